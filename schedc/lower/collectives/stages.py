"""Collectives made of stages: in each, every member of a group sends a block to every other one, all at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from schedc.ir.expr import Const, Counter, Expr, add, mod, mul
from schedc.ir.program import ROW_BYTES, Attribute, Buffer, Loop, Op, Region, RemoteStart, Semaphore, SemaphoreRef, Wait
from schedc.lower.collectives.algorithm import Hop
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import SUBLANES, Exchanged
from schedc.lower.graph import Declarations, round_up
from schedc.lower.parts import compute


class Stage(Protocol):
    """`out` is where the words to be sent are written; `received` are the blocks that have come, with the own one."""

    @property
    def group(self) -> Group: ...
    @property
    def block(self) -> int:
        """Word rows of a message; they lie `pitch` apart."""
        ...

    @property
    def pitch(self) -> int: ...

    @property
    def count(self) -> int:
        """Blocks in the operand `blocks` of what was received."""
        ...

    def declarations(self) -> Declarations: ...
    def out(self, slot: Expr) -> Region: ...
    def send(self, slot: Expr) -> tuple[Op, ...]: ...
    def wait(self, slot: Expr) -> tuple[Op, ...]: ...
    def received(self, slot: Expr) -> dict[str, Region]: ...
    def settle(self, slot: Expr) -> tuple[Op, ...]: ...


@dataclass(frozen=True)
class _Exchange:
    """One message of `block` word rows to every other member.

    Messages lie in whole groups of 8 word rows, so that each begins at one; what is not sent of a group is zero.
    """

    name: str
    group: Group
    block: int
    pool: str
    pieces: int
    single: bool = False
    """Where something else keeps peers from sending again too early, one slot a piece is enough."""

    @property
    def slots(self) -> int:
        return self.pieces * (1 if self.single else 2)

    @property
    def pitch(self) -> int:
        """Rows from one message to the next."""
        return round_up(self.block, SUBLANES)

    def _slot(self, slot: Expr) -> Expr:
        return mod(slot, self.pieces) if self.single else slot

    def _region(self, name: str, rows: int, offset: Expr, slot: Expr) -> Region:
        return Region(name, rows, offset, self._slot(slot))

    def _declarations(self, *buffers: tuple[str, int]) -> Declarations:
        """`buffers`: the last one is where the messages of others come."""
        semaphores = Semaphore(f"{self.name}_sent", self.slots), Semaphore(f"{self.name}_arrived", self.slots)
        name, rows = buffers[-1]
        cleared = tuple(Region(name, rows, slot=Const(slot)) for slot in range(self.slots))
        return Declarations(
            tuple(Buffer(n, self.pool, rows, self.slots) for n, rows in buffers),
            semaphores=semaphores,
            cleared=cleared if self.pitch > self.block else (),
        )

    def _to_each(self, source, target, slot: Expr) -> tuple[Op, ...]:
        """`source(d)` to `target(d)` of the member d + 1 away."""
        alone = self.group.size == 2
        number: Expr = Const(0) if alone else Counter(f"{self.name}_peer")
        start = RemoteStart(
            source(number),
            target(number),
            self.group.other_rank(add(number, 1)),
            SemaphoreRef(f"{self.name}_sent", self._slot(slot)),
            SemaphoreRef(f"{self.name}_arrived", self._slot(slot)),
        )
        return (start,) if alone else (Loop(f"{self.name}_peer", Const(self.group.size - 1), (start,), unroll=True),)

    def wait(self, slot: Expr) -> tuple[Op, ...]:
        return (Wait(SemaphoreRef(f"{self.name}_arrived", self._slot(slot)), (self.group.size - 1) * self.block),)

    def settle(self, slot: Expr) -> tuple[Op, ...]:
        return (Wait(SemaphoreRef(f"{self.name}_sent", self._slot(slot)), (self.group.size - 1) * self.block),)


class Gather(_Exchange):
    """Every member's block to all members, which keep them in the order of the members.

    The own block is among them as it is on the wire, so that a sum of them is the same everywhere, bit for bit.
    """

    @property
    def count(self) -> int:
        return self.group.size

    def declarations(self) -> Declarations:
        return self._declarations((self.name, self.group.size * self.pitch))

    def out(self, slot: Expr) -> Region:
        return self._region(self.name, self.pitch, mul(self.group.index(), self.pitch), slot)

    def send(self, slot: Expr) -> tuple[Op, ...]:
        own = replace(self.out(slot), rows=self.block)
        return self._to_each(lambda d: own, lambda d: own, slot)

    def received(self, slot: Expr) -> dict[str, Region]:
        return {"blocks": self._region(self.name, self.group.size * self.pitch, Const(0), slot)}


class Scatter(_Exchange):
    """Block i of every member to member i."""

    @property
    def count(self) -> int:
        return self.group.size - 1

    def declarations(self) -> Declarations:
        size, pitch = self.group.size, self.pitch
        return self._declarations((f"{self.name}_out", size * pitch), (f"{self.name}_in", (size - 1) * pitch))

    def out(self, slot: Expr) -> Region:
        return self._region(f"{self.name}_out", self.group.size * self.pitch, Const(0), slot)

    def send(self, slot: Expr) -> tuple[Op, ...]:
        def source(number: Expr) -> Region:
            offset = mul(self.group.other(add(number, 1)), self.pitch)
            return self._region(f"{self.name}_out", self.block, offset, slot)

        def target(number: Expr) -> Region:
            return self._region(f"{self.name}_in", self.block, mul(number, self.pitch), slot)

        return self._to_each(source, target, slot)

    def received(self, slot: Expr) -> dict[str, Region]:
        own = self._region(f"{self.name}_out", self.pitch, mul(self.group.index(), self.pitch), slot)
        others = (self.group.size - 1) * self.pitch
        return {"blocks": self._region(f"{self.name}_in", others, Const(0), slot), "own": own}


class Swap(_Exchange):
    """The block of each of two members to the other."""

    @property
    def count(self) -> int:
        return 1

    def declarations(self) -> Declarations:
        return self._declarations((f"{self.name}_out", self.block), (f"{self.name}_in", self.block))

    def out(self, slot: Expr) -> Region:
        return self._region(f"{self.name}_out", self.block, Const(0), slot)

    def send(self, slot: Expr) -> tuple[Op, ...]:
        target = self._region(f"{self.name}_in", self.block, Const(0), slot)
        return self._to_each(lambda d: self.out(slot), lambda d: target, slot)

    def received(self, slot: Expr) -> dict[str, Region]:
        return {"blocks": self._region(f"{self.name}_in", self.block, Const(0), slot)}


Combine = Literal["sum", "keep"]
"""What is done with the blocks of a stage: they are added, or kept one after the other."""


@dataclass(frozen=True)
class Staged:
    """Stages one after the other.

    The parts of what is scattered or gathered lie in the order of the members in the caller's region, and on the wire
    in that in which the stages of `levels` members take them: for 2x4, members 0, 2, 4, 6, then 1, 3, 5, 7.
    """

    exchanged: Exchanged
    stages: tuple[tuple[Stage, Combine], ...]
    levels: tuple[int, ...] = ()
    in_panels: bool = False
    """Whether the parts that members add are whole panels (`operations/parts.py`), not so many rows."""

    def declarations(self) -> Declarations:
        return sum((stage.declarations() for stage, _ in self.stages), Declarations())

    def start(self, source: Region, slot: Expr) -> tuple[Op, ...]:
        stage = self.stages[0][0]
        kind, how = ("pack_parts", self._members) if self.in_panels else ("pack_wire", self._levels("reduce_scatter"))
        pack = compute(kind, {"x": source}, {"out": stage.out(slot)}, attributes=self.exchanged.parts | how)
        return pack, *stage.send(slot)

    def steps(self, slot: Expr) -> tuple[tuple[Op, ...], ...]:
        return tuple(
            (*stage.wait(slot), self._combine(stage, combine, after.out(slot), slot), *after.send(slot))
            for (stage, combine), (after, _) in zip(self.stages, self.stages[1:], strict=False)
        )

    def finish(self, target: Region, slot: Expr) -> tuple[Op, ...]:
        stage, combine = self.stages[-1]
        reads, out, parts = stage.received(slot), {"out": target}, self.exchanged.parts
        if combine == "sum":
            last = compute("sum_wire", reads, out, attributes=parts, count=stage.count, result="f32")
        else:
            kind, how = (
                ("unpack_parts", self._members) if self.in_panels else ("unpack_wire", self._levels("all_gather"))
            )
            last = compute(kind, reads, out, attributes=parts | how)
        return *stage.wait(slot), last

    def settle(self, slot: Expr) -> tuple[Op, ...]:
        return tuple(op for stage, _ in self.stages for op in stage.settle(slot))

    def _combine(self, stage: Stage, combine: Combine, out: Region, slot: Expr) -> Op:
        reads, wire = stage.received(slot), self.exchanged.wire
        if combine == "sum":
            return compute("sum_wire", reads, {"out": out}, count=stage.count, wire=wire, result=wire)
        return compute("move", {"x": reads["blocks"]}, {"out": out})

    @property
    def _members(self) -> dict[str, Attribute]:
        return {"members": self.exchanged.group.size}

    def _levels(self, kind: str) -> dict[str, Attribute]:
        """`2x4`, or `1` where it is all one part."""
        sizes = self.levels if kind == self.exchanged.kind else ()
        return {"levels": "x".join(str(size) for size in sizes) or "1"}


def hops_of(staged: Staged) -> tuple[Hop, ...]:
    """What a device sends in each stage: a member that is on the same chip is the sibling."""
    inside = staged.exchanged.topology.devices_per_chip
    hops = []
    for stage, _ in staged.stages:
        near = min(stage.group.size, max(1, inside // stage.group.stride)) - 1
        size = stage.block * ROW_BYTES
        hops.append(Hop(near * size, (stage.group.size - 1 - near) * size))
    return tuple(hops)
