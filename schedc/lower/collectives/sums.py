"""The all-reduces of a step: each half of a layer that leaves partial outputs is summed by a collective of its cut.

Sums of one cut share a collective. Where the output is made tile by tile, a piece is a tile, and is on its way while
the next one is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedc.ir.expr import Const, Counter, Expr, add, mul
from schedc.ir.program import Loop, Op, Region
from schedc.lower.collectives.group import Group, Topology
from schedc.lower.collectives.protocol import Collective, Exchanged, occurrence_parity
from schedc.lower.collectives.registry import make_collective
from schedc.lower.graph import Declarations
from schedc.weights.layout import WordDtype


@dataclass(frozen=True)
class Cut:
    """An output of f32[rows, 128] in so many pieces of so many rows; of `height` rows of a panel `used` are wanted.

    It is summed by `algorithm` in words of `wire`.
    """

    rows: int
    pieces: int = 1
    height: int = 0
    used: int = 0
    algorithm: str = "one_shot"
    wire: WordDtype = "f32"


@dataclass(frozen=True)
class Sum:
    """The sum `index` of the `per_trip` ones of its collective in its loop, with `before` ones before the loop."""

    collective: Collective
    before: int
    per_trip: int
    index: int

    @property
    def pieces(self) -> int:
        return self.collective.exchanged.pieces

    def start(self, output: str, trip: Expr, piece: Expr) -> tuple[Op, ...]:
        """Send one piece of `output`, which may be written again after `finish`."""
        return self.collective.start(self._piece(output, piece), self._slot(trip, piece))

    def finish(self, output: str, trip: Expr) -> tuple[Op, ...]:
        """Put the sum of all devices' `output` in its place."""
        name, steps = f"{self.collective.exchanged.name}_piece", len(self.collective.steps(Const(0)))
        piece: Expr = Counter(name) if self.pieces > 1 else Const(0)
        slot = self._slot(trip, piece)
        parts = [self.collective.steps(slot)[step] for step in range(steps)]
        parts += [self.collective.finish(self._piece(output, piece), slot), self.collective.settle(slot)]
        if self.pieces == 1:
            return tuple(op for part in parts for op in part)
        return tuple(Loop(name, Const(self.pieces), part, unroll=True) for part in parts)

    def _piece(self, output: str, piece: Expr) -> Region:
        rows = self.collective.exchanged.rows
        return Region(output, rows, mul(piece, rows))

    def _slot(self, trip: Expr, piece: Expr) -> Expr:
        parity = occurrence_parity(self.before, self.per_trip, self.index, trip)
        return add(mul(parity, self.pieces), piece)


@dataclass(frozen=True)
class LoopCuts:
    """A loop of `trips` with the cuts of the sums of one trip, in their order."""

    trips: int
    cuts: tuple[Cut, ...]


@dataclass(frozen=True)
class Sums:
    """All sums of a step; `loops` come one after the other."""

    loops: tuple[LoopCuts, ...]
    devices: int
    topology: Topology

    def declarations(self) -> Declarations:
        return sum((collective.declarations() for collective in self._collectives().values()), Declarations())

    def of_loop(self, number: int) -> tuple[Sum, ...]:
        """The sums of one trip of a loop."""
        collectives, loop = self._collectives(), self.loops[number]
        return tuple(
            Sum(
                collectives[cut],
                sum(earlier.trips * earlier.cuts.count(cut) for earlier in self.loops[:number]),
                loop.cuts.count(cut),
                loop.cuts[:index].count(cut),
            )
            for index, cut in enumerate(loop.cuts)
        )

    def _collectives(self) -> dict[Cut, Collective]:
        """An algorithm numbers its stages behind the name of a sum, so that sums of several algorithms are not told
        apart by a number: the stage 1 of `sum` is `sum_1`."""
        cuts = tuple(dict.fromkeys(cut for loop in self.loops for cut in loop.cuts))
        several = len({cut.algorithm for cut in cuts}) > 1
        kinds = (f"sum_{cut.algorithm}_{number}" if several else f"sum_{number}" for number, cut in enumerate(cuts))
        return {
            cut: self._collective("sum" if number == 0 else name, cut)
            for number, (cut, name) in enumerate(zip(cuts, kinds, strict=True))
        }

    def _collective(self, name: str, cut: Cut) -> Collective:
        group = Group(self.devices, self.devices)
        summed = Exchanged(name, "all_reduce", group, self.topology, cut.rows, cut.wire, pieces=cut.pieces)
        if cut.used < cut.height:
            summed = replace(summed, height=cut.height, used=cut.used)
        return make_collective(cut.algorithm, summed)
