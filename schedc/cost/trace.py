"""What a simulation did, operation by operation: the material of critical paths, idle times and dependences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from schedc.cost.values import RankedValue, Scope, ranked_value_of
from schedc.ir.expr import elements
from schedc.ir.program import Buffer, Compute, Op, Program, Region, RemoteStart, Start
from schedc.ir.uses import addresses, operands, transfer_name, values

Span = tuple[str, int, int]
"""Rows `low..high-1` of an HBM array, of a pool, or of a buffer without address."""

Access = Callable[[list[int], list[list[int]], int], Span]
"""A span of counters, scalar arrays and the rank."""


@dataclass(slots=True)
class Flight:
    """A transfer, a message between devices or a barrier, on its way from `issued` to `ended`, in ns.

    `latency` is the part in which it takes no bandwidth, at the beginning of an HBM transfer, at the end of a message;
    `alone` the time of HBM or link that it needs, from `began` on if it has it for itself; `late` the lateness of the
    peer. `starter` is the operation that started it, as a place in `Trace.executed`.
    """

    lane: Literal["hbm", "link", "signal", "barrier"]
    name: str
    phase: str
    starter: int
    issued: float
    latency: float
    alone: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    late: float = 0.0
    peer: int = -1
    """The device that a message comes from, if it is known."""


@dataclass(slots=True)
class Executed:
    """One execution of operation `number` of `walk(program.body)`.

    `needs` are the scalar arrays that its addresses, its values or its being executed depend on. `cause` is what
    ended its stall, None if it did not stall. A start's writes are there when its `flight` has ended; what a message
    writes is what arrives here, from the peer that does the same.
    """

    number: int
    name: str
    phase: str
    began: float
    ended: float
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    needs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    flight: Flight | None = None
    cause: Flight | None = None
    iteration: tuple[str, int] | None = None
    """Counter and value of the outermost loop."""
    computes: bool = False
    """Whether it is a computation."""


@dataclass(frozen=True)
class Trace:
    executed: tuple[Executed, ...]
    phases: tuple[tuple[float, str], ...]
    """(time, phase) whenever the core comes into a phase."""

    def flights(self, lane: str) -> list[Flight]:
        return [e.flight for e in self.executed if e.flight is not None and e.flight.lane == lane]


@dataclass(frozen=True)
class Touches:
    """What the operations of a program touch, as functions."""

    program: Program
    scalar_index: Mapping[str, int]

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.program.buffers}

    @cached_property
    def _local(self) -> frozenset[str]:
        return frozenset(scalars.name for scalars in self.program.scalars if scalars.role == "local")

    def access(self, region: Region, scope: Scope) -> Access:
        buffer = self._buffers.get(region.storage)
        place, base, rows = region.storage, 0, region.rows
        offset = ranked_value_of(region.offset, scope, self.scalar_index)
        if buffer is None:
            return lambda c, s, r: (place, low := offset(c, s, r), low + rows)
        if buffer.address is not None:
            place, base = buffer.pool, buffer.address
        slot: RankedValue = ranked_value_of(region.slot, scope, self.scalar_index)
        stride = buffer.rows
        return lambda c, s, r: (place, low := base + slot(c, s, r) * stride + offset(c, s, r), low + rows)

    def accesses(self, op: Op, scope: Scope) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        """(reads, writes)"""
        reads = tuple(self.access(operand.region, scope) for operand in operands(op) if operand.reads)
        return reads, tuple(self.access(operand.region, scope) for operand in operands(op) if operand.writes)

    def needs(self, op: Op) -> tuple[str, ...]:
        """The local scalar arrays that its addresses and values read, less those of what is in it."""
        found = [element.array for expr in (*addresses(op), *values(op)) for element in elements(expr)]
        return tuple(name for name in dict.fromkeys(found) if name in self._local)

    def name(self, op: Op) -> str:
        """Of a start, with the scalar that its address is taken from: `expert_w_up of expert[1]`."""
        match op:
            case Compute():
                return op.kind
            case Start() | RemoteStart():
                return transfer_name(op)
            case _:
                return type(op).__name__.lower()

    def chosen(self, op: Op, scope: Scope) -> Callable[[list[int], list[list[int]]], str] | None:
        """Which element of a local array says where the source of a start is."""
        if not isinstance(op, Start):
            return None
        for element in elements(op.source.offset):
            if element.array in self._local:
                index, array = ranked_value_of(element.index, scope, self.scalar_index), element.array
                return lambda c, s: f" of {array}[{index(c, s, 0)}]"
        return None
