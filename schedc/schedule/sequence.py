"""The order in which tiles pass through a ring, and which tile comes `ahead` of another.

Tiles are numbered over the whole step: segment after segment, trip after trip, stream after
stream. Inside a loop that number is affine in the loop counters, so the tile that is `ahead`
places further is found piece by piece: for each stream it may fall into, an affine index and
the conditions under which it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Expr, add, mod, mul, sub


@dataclass(frozen=True)
class Affine:
    """`constant + Σ coefficient · counter`, each counter in 0 … limit-1."""

    constant: int = 0
    terms: tuple[tuple[str, int, int], ...] = ()
    """(counter, coefficient, limit)"""

    def shifted(self, by: int) -> Affine:
        return Affine(self.constant + by, self.terms)

    def bounds(self) -> tuple[int, int]:
        spans = [(min(0, c * (limit - 1)), max(0, c * (limit - 1))) for _, c, limit in self.terms]
        return self.constant + sum(low for low, _ in spans), self.constant + sum(high for _, high in spans)

    def expr(self) -> Expr:
        terms = add(*(mul(Counter(name), coefficient) for name, coefficient, _ in self.terms if coefficient))
        return add(terms, self.constant) if self.constant >= 0 else sub(terms, -self.constant)

    def modulo(self, divisor: int) -> Expr:
        """The expression `self mod divisor`, for a non-negative value."""
        terms = tuple((name, c % divisor, limit) for name, c, limit in self.terms if c % divisor)
        return mod(Affine(self.constant % divisor, terms).expr(), divisor)


@dataclass(frozen=True)
class Lap:
    """One segment's part of a ring: `trips` times the tiles of `streams` (name, tiles a trip).

    With a `limit`, there are only so many trips, which is known when the step runs: the last lap of a sequence. With
    `at_once` that many trips stand in one iteration of a loop, over the counter `inner`.
    """

    counter: str
    trips: int
    streams: tuple[tuple[str, int], ...]
    limit: Expr | None = None
    at_once: int = 1

    @property
    def tiles(self) -> int:
        """Tiles a trip."""
        return sum(tiles for _, tiles in self.streams)

    @property
    def inner(self) -> str:
        return f"{self.counter}_of"

    @property
    def trip(self) -> Affine:
        """The number of the current trip."""
        if self.trips == 1:
            return Affine()
        if self.at_once == 1:
            return Affine(0, ((self.counter, 1, self.trips),))
        passes = -(-self.trips // self.at_once)
        return Affine(0, ((self.counter, self.at_once, passes), (self.inner, 1, self.at_once)))


@dataclass(frozen=True)
class Target:
    """A tile somewhere ahead: which stream, trip and tile, under which conditions."""

    stream: str
    trip: Expr
    tile: Expr
    conditions: tuple[Compare, ...]


@dataclass(frozen=True)
class Sequence:
    laps: tuple[Lap, ...]

    def base(self, lap: int) -> int:
        return sum(before.tiles * before.trips for before in self.laps[:lap])

    def number(self, lap: int, stream: str, tile: Affine) -> Affine:
        """The running number of a stream's tile `tile` in the current trip of a lap."""
        at = self.laps[lap]
        offset = self.base(lap) + _offset(at, stream)
        trip = tuple((name, coefficient * at.tiles, limit) for name, coefficient, limit in at.trip.terms)
        return Affine(tile.constant + offset, trip + tile.terms)

    def first(self, count: int) -> Iterator[tuple[int, str, int, int]]:
        """(number, stream, trip, tile) of the first `count` tiles of the step."""
        number = 0
        for lap in self.laps:
            for trip in range(lap.trips):
                for stream, tiles in lap.streams:
                    for tile in range(tiles):
                        if number == count:
                            return
                        yield number, stream, trip, tile
                        number += 1

    def ahead(self, lap: int, stream: str, tile: Affine, distance: int) -> Iterator[Target]:
        """Where the tile `distance` after the given one may lie; the conditions of the targets exclude each other."""
        here = self.number(lap, stream, tile).shifted(distance)
        at = self.laps[lap]
        for later in range(lap, len(self.laps)):
            there = self.laps[later]
            if later == lap:
                longest = distance // at.tiles + 1
                trips = range(longest + 1)
            else:
                low, high = here.bounds()
                first, last = ((bound - self.base(later)) // max(there.tiles, 1) for bound in (low, high))
                trips = range(max(first, 0), min(last, there.trips - 1) + 1) if there.tiles else range(0)
            for k in trips:
                if later == lap and k and at.trips == 1:
                    break
                trip_low = self._trip_condition(at, k) if later == lap and k else ()
                if trip_low is None:
                    continue
                for name, tiles in there.streams:
                    start = self.base(later) + _offset(there, name)
                    index = here.shifted(-start)
                    if later == lap:
                        index = _without(index, at.trip).shifted(-k * at.tiles)
                        trip = add(at.trip.expr(), k)
                    else:
                        index = index.shifted(-k * there.tiles)
                        trip = Const(k)
                    conditions = _inside(index, tiles)
                    if conditions is not None:
                        yield Target(name, trip, index.expr(), (*trip_low, *conditions))

    def _trip_condition(self, lap: Lap, k: int) -> tuple[Compare, ...] | None:
        """`counter + k < trips`, decided where it can be."""
        if k >= lap.trips:
            return None
        return (Compare("<", add(lap.trip.expr(), k), lap.limit or Const(lap.trips)),)


def _offset(lap: Lap, stream: str) -> int:
    position = 0
    for name, tiles in lap.streams:
        if name == stream:
            return position
        position += tiles
    raise KeyError(stream)


def _without(index: Affine, trip: Affine) -> Affine:
    counters = {name for name, _, _ in trip.terms}
    return Affine(index.constant, tuple(term for term in index.terms if term[0] not in counters))


def _inside(index: Affine, tiles: int) -> tuple[Compare, ...] | None:
    """The conditions 0 <= index < tiles that do not hold anyway; None if they never hold."""
    low, high = index.bounds()
    if high < 0 or low >= tiles:
        return None
    conditions = []
    if low < 0:
        conditions.append(Compare(">=", Affine(0, index.terms).expr(), Const(-index.constant)))
    if high >= tiles:
        conditions.append(Compare("<", Affine(0, index.terms).expr(), Const(tiles - index.constant)))
    return tuple(conditions)
