"""Every device sends rows to every other: what is behind the sum of partial results and the arg-max."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Const, Counter, Expr, Rank, add, mod, mul
from schedc.ir.program import Buffer, Loop, Op, Region, RemoteStart, Semaphore, SemaphoreRef, Wait
from schedc.lower.graph import Declarations
from schedc.lower.parts import PEERS, compute


@dataclass(frozen=True)
class Turn:
    """How many exchanges of a kind came before: `first`, and `each` more a trip of the loop. They alternate slots."""

    first: int
    each: int

    def later(self, count: int) -> Turn:
        return Turn(self.first + count, self.each)

    def slot(self, trip: Expr, slots: int) -> Expr:
        return mod(add(mul(trip, self.each % slots), self.first % slots), slots)


class Exchange:
    """All devices' `rows` rows side by side, by rank, in one of `slots` slots of the buffer `<name>_inbox`.

    Two slots in turn are enough: who has the rows of all peers in one knows that all have read the other.
    """

    def __init__(self, name: str, devices: int, rows: int, slots: int = 1) -> None:
        self.name, self.devices, self.rows, self.slots = name, devices, rows, slots
        self.inbox, self.sent, self.arrived = f"{name}_inbox", f"{name}_sent", f"{name}_arrived"

    def declarations(self) -> Declarations:
        return Declarations(
            buffers=(Buffer(self.inbox, PEERS, self.devices * self.rows, slots=self.slots),),
            semaphores=(Semaphore(self.sent, self.slots), Semaphore(self.arrived, self.slots)),
        )

    def start(self, source: Region, slot: Expr) -> tuple[Op, ...]:
        """Send `source` to all peers, and keep it at this device's own place."""
        mine = self.part(Rank(), slot)
        counter = Counter("d")
        peer = mod(add(Rank(), add(counter, 1)), self.devices)
        sends = RemoteStart(source, mine, peer, SemaphoreRef(self.sent, slot), SemaphoreRef(self.arrived, slot))
        return (
            compute("move", {"x": source}, {"out": mine}),
            Loop(counter.name, Const(self.devices - 1), (sends,), unroll=True),
        )

    def finish(self, slot: Expr) -> tuple[Op, ...]:
        """The rows of all have come, and the source may be written again."""
        rows = (self.devices - 1) * self.rows
        return Wait(SemaphoreRef(self.arrived, slot), rows), Wait(SemaphoreRef(self.sent, slot), rows)

    def part(self, device: Expr | int, slot: Expr) -> Region:
        return Region(self.inbox, self.rows, mul(device, self.rows), slot)

    def whole(self, slot: Expr) -> Region:
        return Region(self.inbox, self.devices * self.rows, slot=slot)
