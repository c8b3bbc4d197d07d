"""A cache of pages, each a tile of any sequence: `[layer][page]`. The scalars `page` say where a tile lies."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Element, Expr, add, mul
from schedc.ir.program import Array, Scalars
from schedc.lower.caches.shape import CacheShape

TABLE = "page"


@dataclass(frozen=True)
class Paged:
    """The tile in place t of sequence r lies in page `page[r · tiles + t]` of every layer.

    Where devices have the tiles in turn, each has one in that place, and all have it in that page.
    """

    name: str
    layers: int
    pages: int
    cache: CacheShape

    @property
    def array(self) -> Array:
        return Array(self.name, self.layers * self.pages * self.cache.tile, "state")

    def tile_row(self, trip: Expr, row: Expr, tile: Expr) -> Expr:
        """The first row of the `tile`-th tile of sequence `row` in the `trip`-th layer."""
        page = Element(TABLE, add(mul(row, self.cache.max_tiles), tile))
        return mul(add(mul(trip, self.pages), page), self.cache.tile)


def page_table(rows: int, tiles: int, pages: int) -> Scalars:
    """Pages that a step reads of, or writes to, for different tiles are different: a precondition of the kernel."""
    return Scalars(TABLE, rows * tiles, 0, pages - 1, "input", distinct=True)
