"""A cache in which every sequence has room for the whole context: `[layer][row][tile]`."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Expr, add, mul
from schedc.ir.program import Array
from schedc.lower.caches.shape import CacheShape


@dataclass(frozen=True)
class Contiguous:
    name: str
    layers: int
    rows: int
    cache: CacheShape

    @property
    def array(self) -> Array:
        return Array(self.name, self.layers * self.rows * self.cache.max_tiles * self.cache.tile, "state")

    def tile_row(self, trip: Expr, row: Expr, tile: Expr) -> Expr:
        """The first row of the `tile`-th tile of sequence `row` in the `trip`-th layer."""
        sequence = mul(add(mul(trip, self.rows), row), self.cache.max_tiles * self.cache.tile)
        return add(sequence, mul(tile, self.cache.tile))
