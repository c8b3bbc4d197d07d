"""What is known of rows of storage, by intervals: the time of the last access to each, and who made it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from schedc.cost.trace import Span

Mark = tuple[float, int]
"""A time in ns, and the place in the trace of what happened then."""

NEVER: Mark = (0.0, -1)


@dataclass
class RowMarks:
    """A mark for every row that has one; intervals of one mark are disjoint and sorted."""

    _lows: dict[str, list[int]] = field(default_factory=dict)
    _highs: dict[str, list[int]] = field(default_factory=dict)
    _marks: dict[str, list[Mark]] = field(default_factory=dict)

    def latest(self, span: Span) -> Mark:
        """The latest mark of any row of the span."""
        at = self._exact(span)
        if at is not None:
            return self._marks[span[0]][at]
        return max((mark for _, _, mark in self._within(span)), default=NEVER)

    def every(self, span: Span) -> frozenset[Mark]:
        """All marks of rows of the span."""
        at = self._exact(span)
        if at is not None:
            return frozenset((self._marks[span[0]][at],))
        return frozenset(mark for _, _, mark in self._within(span))

    def put(self, span: Span, mark: Mark) -> None:
        """All rows of the span get this mark in place of theirs."""
        storage, low, high = span
        exact = self._exact(span)
        if exact is not None:
            self._marks[storage][exact] = mark
            return
        first, last, cut = self._cut(storage, low, high)
        lows, highs, marks = self._lows[storage], self._highs[storage], self._marks[storage]
        pieces = [*(piece for piece in cut if piece[1] <= low), (low, high, mark), *(p for p in cut if p[0] >= high)]
        lows[first:last] = [piece[0] for piece in pieces]
        highs[first:last] = [piece[1] for piece in pieces]
        marks[first:last] = [piece[2] for piece in pieces]

    def raise_to(self, span: Span, mark: Mark) -> None:
        """The same, but never an earlier mark than the latest of the span."""
        self.put(span, max(mark, self.latest(span)))

    def _exact(self, span: Span) -> int | None:
        """Where there is an interval of exactly these rows."""
        storage, low, high = span
        lows = self._lows.get(storage)
        if lows is None:
            return None
        at = bisect_left(lows, low)
        return at if at < len(lows) and lows[at] == low and self._highs[storage][at] == high else None

    def _within(self, span: Span) -> Iterator[tuple[int, int, Mark]]:
        storage, low, high = span
        if storage not in self._lows:
            return
        lows, highs, marks = self._lows[storage], self._highs[storage], self._marks[storage]
        at = max(0, bisect_right(lows, low) - 1)
        while at < len(lows) and lows[at] < high:
            if highs[at] > low:
                yield lows[at], highs[at], marks[at]
            at += 1

    def _cut(self, storage: str, low: int, high: int) -> tuple[int, int, list[tuple[int, int, Mark]]]:
        """(first and one past the last interval that meet low..high, what of them lies outside of it)"""
        lows, highs = self._lows.setdefault(storage, []), self._highs.setdefault(storage, [])
        marks = self._marks.setdefault(storage, [])
        first = bisect_right(highs, low)
        last = bisect_left(lows, high)
        outside = []
        for at in range(first, last):
            if lows[at] < low:
                outside.append((lows[at], low, marks[at]))
            if highs[at] > high:
                outside.append((high, highs[at], marks[at]))
        return first, last, outside
