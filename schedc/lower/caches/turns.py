"""Tiles of a sequence over devices: all of them, or in turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from schedc.ir.expr import Compare, Expr, Rank, add, floordiv, maximum, minimum, mod, mul, sub


@dataclass(frozen=True)
class Turns:
    """Tile t of every sequence lies on device t mod `devices` of a group, there in place t // `devices`.

    `own`: this device's number in its group, 0 … devices-1.
    """

    devices: int = 1
    own: Expr = field(default_factory=Rank)

    @property
    def shared(self) -> bool:
        return self.devices > 1

    def place(self, tile: Expr) -> Expr:
        """Where a tile lies on the device that has it."""
        return floordiv(tile, self.devices)

    def tile(self, place: Expr) -> Expr:
        """Which tile lies in a place of this device."""
        return add(mul(place, self.devices), self.own) if self.shared else place

    def before(self, tile: Expr) -> Expr:
        """How many of the tiles before `tile` this device has."""
        return floordiv(add(tile, sub(self.devices - 1, self.own)), self.devices) if self.shared else tile

    def held(self, tile: Expr) -> tuple[Compare, ...]:
        """Whether this device has the tile."""
        return (Compare("==", mod(tile, self.devices), self.own),) if self.shared else ()

    def has(self, tile: Expr) -> Expr:
        """1 on the device that has the tile, else 0."""
        turn = mod(tile, self.devices)
        return sub(1, minimum(1, maximum(sub(turn, self.own), sub(self.own, turn))))
