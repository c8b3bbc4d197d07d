"""What the operations of a phase touch, as far as it says which of two phases must come first.

VMEM buffers, HBM arrays, arrays of scalars in SMEM and semaphores alike. A wait touches what the transfers of its
semaphore read and write, wherever they are started: until then they are under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Element, Expr, leaves
from schedc.ir.program import (
    Await,
    Barrier,
    Compute,
    Loop,
    Op,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    scalars_set,
    walk,
)

EVERYTHING = "all devices"
"""What a barrier touches: no phase moves across it."""


@dataclass(frozen=True)
class Access:
    """Rows `region` of a storage (None: all of it, or a semaphore or scalars), read or `written`."""

    storage: str
    written: bool
    region: Region | None = None

    def conflicts(self, other: Access) -> bool:
        """Whether the order of the two matters. Only constants tell regions of a storage apart."""
        if not (self.written or other.written):
            return False
        a, b = self.region, other.region
        if a is None or b is None:
            return True
        if isinstance(a.slot, Const) and isinstance(b.slot, Const) and a.slot != b.slot:
            return False
        if not (isinstance(a.offset, Const) and isinstance(b.offset, Const)):
            return True
        return a.offset.value < b.offset.value + b.rows and b.offset.value < a.offset.value + a.rows


InFlight = Mapping[str, frozenset[Access]]
"""Semaphore → what the transfers that count on it access."""


def in_flight(ops: Iterable[Op]) -> InFlight:
    """Of all operations of a step."""
    found: dict[str, set[Access]] = {}
    for op in ops:
        match op:
            case Start(source, target, semaphore):
                found.setdefault(semaphore.name, set()).update(_transfer(source, target))
            case RemoteStart(source, target, _, sent, arrived):
                found.setdefault(sent.name, set()).add(Access(source.storage, False, source))
                found.setdefault(arrived.name, set()).add(Access(target.storage, True, target))
    return {name: frozenset(accesses) for name, accesses in found.items()}


def accesses(ops: tuple[Op, ...], flying: InFlight) -> frozenset[Access]:
    """Of the operations and what is in them."""
    found: set[Access] = set()
    for op in walk(ops):
        found.update(_of(op, flying))
        found.update(Access(name, True) for name in scalars_set(op))
        for expr in _expressions(op):
            found.update(Access(leaf.array, False) for leaf in leaves(expr) if isinstance(leaf, Element))
    return frozenset(found)


def _of(op: Op, flying: InFlight) -> Iterator[Access]:
    match op:
        case Compute():
            for operand in op.operands:
                yield Access(operand.region.storage, operand.access != "read", operand.region)
        case Start(source, target, semaphore):
            yield from _transfer(source, target)
            yield _semaphore(semaphore)
        case RemoteStart(source, target, _, sent, arrived):
            yield from _transfer(source, target)
            yield from (_semaphore(sent), _semaphore(arrived))
        case Wait(semaphore):
            yield _semaphore(semaphore)
            yield from flying.get(semaphore.name, ())
        case Signal(semaphore) | Await(semaphore):
            yield _semaphore(semaphore)
        case Barrier():
            yield Access(EVERYTHING, True)


def _transfer(source: Region, target: Region) -> tuple[Access, Access]:
    return Access(source.storage, False, source), Access(target.storage, True, target)


def _semaphore(ref: SemaphoreRef) -> Access:
    return Access(f"semaphore {ref.name}", True, Region(ref.name, 1, slot=ref.index))


def _expressions(op: Op) -> Iterator[Expr]:
    match op:
        case Compute():
            for operand in op.operands:
                yield from (operand.region.offset, operand.region.slot)
            yield from (value for _, value in op.scalars)
        case Start(source, target, semaphore):
            yield from (source.offset, source.slot, target.offset, target.slot, semaphore.index)
        case RemoteStart(source, target, peer, sent, arrived):
            yield from (source.offset, source.slot, target.offset, target.slot, peer, sent.index, arrived.index)
        case Wait(semaphore) | Await(semaphore):
            yield semaphore.index
        case Signal(semaphore, _, peer):
            yield from (semaphore.index,) if peer is None else (semaphore.index, peer)
        case SetScalar(_, index, value):
            yield from (index, value)
        case Loop(_, trips):
            yield trips
        case When(conditions):
            yield from _sides(conditions)
        case Switch(selector):
            yield selector


def _sides(conditions: tuple[Compare, ...]) -> Iterator[Expr]:
    for condition in conditions:
        yield from (condition.left, condition.right)
