"""Streams on their way through a ring of slots: which slot a tile has, where it is waited for, what is started then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Expr, add, mul
from schedc.ir.program import Op, Region, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Grain, Stream
from schedc.schedule.plan import Ring
from schedc.schedule.sequence import Affine, Sequence


@dataclass(frozen=True, eq=False)
class Passage:
    """The tiles of `sequence` through `ring`: those of the whole step, or of the members of one selection.

    `matrix` says which of a stream's matrices a trip uses.
    """

    ring: Ring
    sequence: Sequence
    streams: dict[str, Stream]
    grain: Grain
    matrix: Callable[[Expr], Expr] = lambda trip: trip

    @property
    def buffer(self) -> str:
        return f"{self.ring.name}_slot"

    @property
    def arrived(self) -> str:
        return f"{self.ring.name}_arrived"

    def begin(self) -> Iterator[Op]:
        """Start the first tiles; with a limit of trips, those that there are."""
        for number, stream, trip, tile in self.sequence.first(self.ring.ahead):
            start = self._start(stream, Const(trip), Const(tile), Const(number % self.ring.slots))
            limit = self.sequence.laps[0].limit
            yield start if limit is None else When((Compare("<", Const(trip), limit),), (start,))

    def slot(self, lap: int, stream: str, tile: Affine) -> Region:
        """Where a tile is in the current trip of a lap."""
        slot = self.sequence.number(lap, stream, tile).modulo(self.ring.slots)
        return Region(self.buffer, self._rows(stream), slot=slot)

    def arrive(self, lap: int, stream: str, tile: Affine) -> tuple[Op, ...]:
        """Wait for a tile; with nothing started ahead, start it first."""
        slot = self.sequence.number(lap, stream, tile).modulo(self.ring.slots)
        wait = Wait(SemaphoreRef(self.arrived, slot), self._rows(stream))
        if self.ring.ahead:
            return (wait,)
        return self._start(stream, self.sequence.laps[lap].trip.expr(), tile.expr(), slot), wait

    def refill(self, lap: int, stream: str, tile: Affine) -> tuple[Op, ...]:
        """After a tile has been used: start the one that is `ahead` places further."""
        if not self.ring.ahead:
            return ()
        slot = self.sequence.number(lap, stream, tile).shifted(self.ring.ahead).modulo(self.ring.slots)
        ops: list[Op] = []
        for target in self.sequence.ahead(lap, stream, tile, self.ring.ahead):
            start = self._start(target.stream, target.trip, target.tile, slot)
            ops.append(When(target.conditions, (start,)) if target.conditions else start)
        return tuple(ops)

    def _rows(self, stream: str) -> int:
        return self.grain.tile_rows(self.streams[stream])

    def _start(self, stream: str, trip: Expr, tile: Expr, slot: Expr) -> Start:
        rows = self._rows(stream)
        offset = add(mul(self.matrix(trip), rows * self.grain.tiles(self.streams[stream])), mul(tile, rows))
        return Start(
            Region(stream, rows, offset), Region(self.buffer, rows, slot=slot), SemaphoreRef(self.arrived, slot)
        )
