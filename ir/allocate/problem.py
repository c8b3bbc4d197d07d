"""One pool as a packing problem: rectangles in time and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A buffer of `size` rows, live during lower..upper-1, at a multiple of `align` rows."""

    name: str
    lower: int
    upper: int
    size: int
    align: int = 8
    fixed: int | None = None
    """Its address, if it is given."""

    def meets(self, other: Item) -> bool:
        """Whether both are live at some time."""
        return self.lower < other.upper and other.lower < self.upper


@dataclass(frozen=True)
class Problem:
    items: tuple[Item, ...]

    def live_at(self, time: int) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.lower <= time < item.upper)

    def peak(self) -> tuple[int, int]:
        """Most rows live at once, a lower bound of every solution, and the first such time."""
        best, when = 0, 0
        for time in sorted({item.lower for item in self.items}):
            load = sum(item.size for item in self.live_at(time))
            if load > best:
                best, when = load, time
        return best, when

    def height(self, addresses: Mapping[str, int]) -> int:
        return max((addresses[item.name] + item.size for item in self.items), default=0)


def aligned(row: int, align: int) -> int:
    return -(-row // align) * align
