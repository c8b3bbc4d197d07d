"""Whether the rows of one device are those of another under other numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

Rows = tuple[int, int, int]
"""The first row on one device, the first row on the other, and how many rows."""
Interval = tuple[int, int, int]
"""Rows from..to-1, and which of the sets they are in, a bit for each."""


def renames(sets: Iterable[Rows], kept: Iterable[tuple[int, int]]) -> bool:
    """Whether a bijection of rows maps every set of rows to its image, and each row of `kept`, low..high-1, to itself.

    Two rows can only be told apart by the sets that they are in. So there is one exactly if, of every combination of
    sets, as many rows are in just those on one side as on the other, and the rows of `kept` are in the same sets.
    """
    kept = list(dict.fromkeys(kept))
    both = list(dict.fromkeys([*sets, *((low, low, high - low) for low, high in kept)]))
    mine = _intervals([(first, rows) for first, _, rows in both])
    theirs = _intervals([(first, rows) for _, first, rows in both])
    return _sizes(mine) == _sizes(theirs) and all(_within(mine, *k) == _within(theirs, *k) for k in kept)


def _intervals(sets: Sequence[tuple[int, int]]) -> list[Interval]:
    """In order, each as long as can be: at every end some set begins or ends."""
    changes: dict[int, int] = {}
    for number, (first, rows) in enumerate(sets):
        for row in (first, first + rows):
            changes[row] = changes.get(row, 0) ^ (1 << number)
    found: list[Interval] = []
    inside = 0
    for low, high in pairwise(sorted(changes)):
        inside ^= changes[low]
        if inside:
            found.append((low, high, inside))
    return found


def _sizes(intervals: Sequence[Interval]) -> Counter[int]:
    sizes: Counter[int] = Counter()
    for low, high, inside in intervals:
        sizes[inside] += high - low
    return sizes


def _within(intervals: Sequence[Interval], low: int, high: int) -> list[Interval]:
    return [(max(a, low), min(b, high), inside) for a, b, inside in intervals if a < high and low < b]
