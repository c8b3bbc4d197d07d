"""One pool as a packing problem: items that are live during sets of times, and take rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Span = tuple[int, int]
"""Times first..end-1."""


@dataclass(frozen=True)
class Item:
    """A buffer of `size` rows, live during `spans`, at one address, a multiple of `align` rows.

    Spans are in order and do not touch. A buffer that an iteration of a loop hands to the next has two:

        time    | 0 1 2 3 4 5 6 7 8 9
        loop    |     [           ]
        live    |     x x       x x          ((2, 4), (7, 9))
    """

    name: str
    spans: tuple[Span, ...]
    size: int
    align: int = 8
    fixed: int | None = None
    """Its address, if it is given."""

    def meets(self, other: Item) -> bool:
        """Whether both are live at some time."""
        return any(a < d and c < b for a, b in self.spans for c, d in other.spans)

    def live_at(self, time: int) -> bool:
        return any(first <= time < end for first, end in self.spans)

    @property
    def duration(self) -> int:
        return sum(end - first for first, end in self.spans)


@dataclass(frozen=True)
class Problem:
    items: tuple[Item, ...]

    def live_at(self, time: int) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.live_at(time))

    @cached_property
    def _peak(self) -> tuple[int, int]:
        best, when = 0, 0
        changes: dict[int, int] = {}
        for item in self.items:
            for first, end in item.spans:
                changes[first] = changes.get(first, 0) + item.size
                changes[end] = changes.get(end, 0) - item.size
        load = 0
        for time in sorted(changes):
            load += changes[time]
            if load > best:
                best, when = load, time
        return best, when

    def peak(self) -> tuple[int, int]:
        """Most rows live at once, a lower bound of every packing's height, and the first such time."""
        return self._peak

    def floor(self) -> int:
        """A lower bound of the height: the peak, and the end of every fixed item."""
        return max([self.peak()[0], *(item.fixed + item.size for item in self.items if item.fixed is not None)])

    def height(self, addresses: Mapping[str, int]) -> int:
        return max((addresses[item.name] + item.size for item in self.items), default=0)


def aligned(row: int, align: int) -> int:
    """The lowest multiple of `align` that is not below `row`."""
    return -(-row // align) * align
