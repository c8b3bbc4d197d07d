"""How a dimension is divided over devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """`total` items: device d holds `each` of them from ((d // every) % ring) · each on, and none past the last.

    `every` neighbouring devices hold the same items, and so do devices `every · ring` apart.
    """

    total: int
    each: int
    every: int = 1
    ring: int = 1

    def start(self, device: int) -> int:
        return device // self.every % self.ring * self.each

    def copies(self, devices: int) -> int:
        """How many of `devices` hold an item: the same number for all, 0 where it is not."""
        return 0 if devices % (self.every * self.ring) else devices // self.ring

    def held(self, device: int) -> range:
        """The items of `device`; fewer than `each`, or none, where its place is padding."""
        start = self.start(device)
        return range(min(start, self.total), min(start + self.each, self.total))

    @property
    def is_split(self) -> bool:
        """Whether a device holds less than all."""
        return self.ring > 1

    @property
    def padding(self) -> int:
        """Places that hold nothing, over one copy of the items."""
        return self.each * self.ring - self.total

    def shard(self, size: int = 1) -> dict[str, int]:
        """The fields `step`, `every` and `ring` of a layout's part, for items of `size` columns or rows."""
        return {"step": self.each * size, "every": self.every, "ring": self.ring} if self.is_split else {}


def whole(total: int) -> Split:
    """Every device holds all."""
    return Split(total, total)


def evenly(total: int, devices: int, unit: int = 1) -> Split:
    """Equal shares in whole units, such as panels of 128 columns: the last devices may hold less, or nothing."""
    if devices == 1:
        return whole(total)
    units = -(-total // unit)
    return Split(total, -(-units // devices) * unit, 1, devices)


def in_copies(total: int, devices: int, unit: int) -> Split:
    """Shares of whole units as `evenly`, but where there are fewer than devices, neighbours have copies of one."""
    if devices == 1:
        return whole(total)
    units = -(-total // unit)
    each = -(-units // devices)
    ring = -(-units // each)
    return Split(total, each * unit, devices // ring, ring) if ring > 1 else whole(total)
