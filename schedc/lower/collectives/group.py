"""Who takes part in a collective, as expressions of a device's own rank, and where the devices sit."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from schedc.errors import UserError
from schedc.ir.expr import Expr, Rank, add, floordiv, mod, mul, sub, xor
from schedc.target.target import Target


@dataclass(frozen=True)
class Group:
    """`size` of the `devices` of a program, `stride` apart.

    Ranks r of equal `r // (size · stride)` and equal `r % stride` are in one; all groups of that form do the same.
    """

    devices: int
    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        if self.size < 2 or self.stride < 1 or self.devices % (self.size * self.stride):
            raise UserError(
                f"a collective over groups of {self.size} devices, {self.stride} apart: {self.devices} devices are not "
                "whole groups of two or more; choose a size and a stride whose product divides the devices"
            )

    def index(self) -> Expr:
        """This device's number in its group, 0 … size-1."""
        number = floordiv(Rank(), self.stride)
        return number if self.size * self.stride == self.devices else mod(number, self.size)

    def rank(self, index: Expr) -> Expr:
        """The rank of the member `index` of this device's group."""
        first = sub(Rank(), mul(self.index(), self.stride)) if self.size != self.devices else 0
        return add(first, mul(index, self.stride))

    def other(self, distance: Expr) -> Expr:
        """The index of the member `distance` (1 … size-1) away: each is that far from one, and one is that far from it.

        A power of two pairs them off, so that both directions of a link are used at once.
        """
        if self.size & (self.size - 1) == 0:
            return xor(self.index(), distance)
        return mod(add(self.index(), distance), self.size)

    def other_rank(self, distance: Expr) -> Expr:
        """The rank of the member `distance` away."""
        if self.size & (self.size - 1) == 0:
            return xor(Rank(), mul(distance, self.stride))
        return self.rank(self.other(distance))


@dataclass(frozen=True)
class Topology:
    """Consecutive devices share a chip, and consecutive chips a host."""

    devices_per_chip: int
    devices_per_host: int

    def levels(self, group: Group) -> tuple[Group, ...]:
        """The group in levels, nearest devices first: on a chip, on a host, beyond; levels of one device are left out.

        Raises UserError where the group does not fill whole chips or hosts.
        """
        levels: list[Group] = []
        stride, left = group.stride, group.size
        for name, inside in (("chip", self.devices_per_chip), ("host", self.devices_per_host)):
            if stride >= inside or left == 1:
                continue
            size = min(left, inside // stride)
            if inside % stride or left % size:
                raise UserError(
                    f"a hierarchical collective over {group.size} devices, {group.stride} apart: they do not "
                    f"fill whole {name}s of {inside} devices; choose another algorithm"
                )
            levels += [Group(group.devices, size, stride)] if size > 1 else []
            stride, left = stride * size, left // size
        if left > 1:
            levels.append(Group(group.devices, left, stride))
        assert prod(level.size for level in levels) == group.size
        return tuple(levels)


def topology_of(target: Target) -> Topology:
    per_chip = target.chip.devices_per_chip
    return Topology(per_chip, per_chip * prod(target.chip.host_shape))
