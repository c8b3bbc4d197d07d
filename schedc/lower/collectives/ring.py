"""Ring: each device passes to the next one what it got last. 2(n - 1) latencies, every link carries the least.

Part j of an all-reduce starts at member j + 1 and is added to by each until it comes to member j, who sends the sum on.
Every step's block has rows of its own, so that a neighbour may be any number of steps ahead. An occurrence ends on a
member only when something of every member has come, which that sent after the one before: so two slots are enough, and
one for an all-reduce, where the first half ends so too and says that all have read what came in the second half last.
"""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Const, Expr, add, mod, mul
from schedc.ir.program import ROW_BYTES, Buffer, Compute, Op, Region, RemoteStart, Semaphore, SemaphoreRef, Wait
from schedc.lower.collectives.algorithm import Algorithm, Hop
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.graph import Declarations
from schedc.lower.parts import compute


@dataclass(frozen=True)
class Ring:
    """Buffers: `own` parts to be added, `in` and `out` blocks of the steps, and what is `gathered`."""

    exchanged: Exchanged

    @property
    def part(self) -> int:
        """Word rows of a block."""
        exchanged, size = self.exchanged, self.exchanged.group.size
        if exchanged.kind == "all_reduce":
            return exchanged.words(exchanged.rows, size) // size
        return exchanged.words(exchanged.rows if exchanged.kind == "all_gather" else exchanged.target_rows)

    @property
    def reduces(self) -> int:
        """Steps that add."""
        return 0 if self.exchanged.kind == "all_gather" else self.exchanged.group.size - 1

    @property
    def gathers(self) -> int:
        """Steps that pass on."""
        return 0 if self.exchanged.kind == "reduce_scatter" else self.exchanged.group.size - 1

    @property
    def single(self) -> bool:
        """Whether one slot a piece is enough."""
        return self.exchanged.kind == "all_reduce"

    @property
    def slots(self) -> int:
        return self.exchanged.pieces * (1 if self.single else 2)

    def _slot(self, slot: Expr) -> Expr:
        return mod(slot, self.exchanged.pieces) if self.single else slot

    def declarations(self) -> Declarations:
        size, steps = self.exchanged.group.size, self.reduces
        rows = {"gathered": size if self.gathers else 0, "own": size if steps else 0, "in": steps, "out": steps - 1}
        buffers = tuple(
            Buffer(self._named(n), self.exchanged.pool, blocks * self.part, self.slots)
            for n, blocks in rows.items()
            if blocks > 0
        )
        arrived = Semaphore(self._named("arrived"), self.slots * (self.reduces + self.gathers))
        return Declarations(buffers, semaphores=(Semaphore(self._named("sent"), self.slots), arrived))

    def start(self, source: Region, slot: Expr) -> tuple[Op, ...]:
        kind = self.exchanged.kind
        out = self._own_parts(slot) if self.reduces else self._gathered(0, slot)
        levels = str(self.exchanged.group.size) if kind == "reduce_scatter" else "1"
        pack = compute("pack_wire", {"x": source}, {"out": out}, attributes=self.exchanged.parts, levels=levels)
        return pack, self._send(0, slot)

    def steps(self, slot: Expr) -> tuple[tuple[Op, ...], ...]:
        steps: list[tuple[Op, ...]] = []
        for step in range(1, self.reduces + self.gathers):
            ops: list[Op] = [self._wait(step - 1, slot)]
            if step < self.reduces:
                ops.append(self._sum(step - 1, self._block("out", step - 1, slot), slot, self.exchanged.wire))
            elif step == self.reduces:
                ops.append(self._sum(step - 1, self._gathered(0, slot), slot, self.exchanged.wire))
            steps.append((*ops, self._send(step, slot)))
        return tuple(steps)

    def finish(self, target: Region, slot: Expr) -> tuple[Op, ...]:
        last = self.reduces + self.gathers - 1
        wait = self._wait(last, slot)
        if not self.gathers:
            return wait, self._sum(last, target, slot, "f32")
        size = self.exchanged.group.size
        whole = Region(self._named("gathered"), size * self.part, slot=self._slot(slot))
        levels = str(size) if self.exchanged.kind == "all_gather" else "1"
        out, parts = {"out": target}, self.exchanged.parts
        unpack = compute("unpack_wire", {"blocks": whole}, out, attributes=parts, levels=levels)
        return wait, unpack

    def settle(self, slot: Expr) -> tuple[Op, ...]:
        return (Wait(SemaphoreRef(self._named("sent"), self._slot(slot)), (self.reduces + self.gathers) * self.part),)

    def _named(self, name: str) -> str:
        return f"{self.exchanged.name}_{name}"

    def _member(self, before: int) -> Expr:
        """The index of the member `before` places before this one."""
        group = self.exchanged.group
        return mod(add(group.index(), -before % group.size), group.size) if before % group.size else group.index()

    def _block(self, name: str, number: int, slot: Expr) -> Region:
        return Region(self._named(name), self.part, Const(number * self.part), self._slot(slot))

    def _own_parts(self, slot: Expr) -> Region:
        return Region(self._named("own"), self.exchanged.group.size * self.part, slot=self._slot(slot))

    def _own(self, before: int, slot: Expr) -> Region:
        return Region(self._named("own"), self.part, mul(self._member(before), self.part), self._slot(slot))

    def _gathered(self, before: int, slot: Expr) -> Region:
        return Region(self._named("gathered"), self.part, mul(self._member(before), self.part), self._slot(slot))

    def _sum(self, step: int, out: Region, slot: Expr, result: str) -> Compute:
        """What came in a step, and the own part of the same member."""
        reads = {"blocks": self._block("in", step, slot), "own": self._own(step + 2, slot)}
        return compute("sum_wire", reads, {"out": out}, count=1, wire=self.exchanged.wire, result=result)

    def _send(self, step: int, slot: Expr) -> RemoteStart:
        if step >= self.reduces:
            source = target = self._gathered(step - self.reduces, slot)
        else:
            source = self._block("out", step - 1, slot) if step else self._own(1, slot)
            target = self._block("in", step, slot)
        sent, arrived = SemaphoreRef(self._named("sent"), self._slot(slot)), self._arrived(step, slot)
        group = self.exchanged.group
        return RemoteStart(source, target, group.rank(self._member(-1)), sent, arrived)

    def _wait(self, step: int, slot: Expr) -> Wait:
        return Wait(self._arrived(step, slot), self.part)

    def _arrived(self, step: int, slot: Expr) -> SemaphoreRef:
        return SemaphoreRef(self._named("arrived"), add(self._slot(slot), self.slots * step))


def hops(exchanged: Exchanged) -> tuple[Hop, ...]:
    """The slowest device of each step sends to another chip, as long as the ring leaves the chip."""
    ring, topology = Ring(exchanged), exchanged.topology
    inside = exchanged.group.size * exchanged.group.stride <= topology.devices_per_chip
    size = ring.part * ROW_BYTES
    return (Hop(size, 0) if inside else Hop(0, size),) * (ring.reduces + ring.gathers)


RING = Algorithm("ring", ("all_reduce", "all_gather", "reduce_scatter"), Ring, hops)
