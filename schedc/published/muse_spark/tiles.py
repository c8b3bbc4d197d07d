"""The ring: dense weights and the head as one stream of tiles, each started when the tile a ring before was used."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Expr, add, mod, mul
from schedc.ir.program import Array, Buffer, Loop, Op, Region, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Declarations
from schedc.lower.parts import STREAM

RING, WEIGHTS, LAYER, HEAD = "ring", "dense_weights", "layer", "head_tile"


@dataclass(frozen=True)
class Tile:
    """`rows` of 512 bytes for one product of `depth` x `panels`·128."""

    product: str
    rows: int
    depth: int
    panels: int


@dataclass(frozen=True)
class TileRing:
    """`layers` times `tiles`, then `head_tiles` times `head`, through `slots` slots."""

    slots: int
    slot_rows: int
    layers: int
    tiles: tuple[Tile, ...]
    head: Tile
    head_tiles: int

    def declarations(self) -> Declarations:
        return Declarations(
            (Buffer(RING, STREAM, self.slot_rows, self.slots),),
            (Array(WEIGHTS, self.layers * self._layer_rows + self.head_tiles * self.head.rows, "weight"),),
            semaphores=(Semaphore(RING, self.slots),),
        )

    def prime(self) -> tuple[Op, ...]:
        """The first tiles of the first layer, of the head if there is none."""
        start = self._start if self.layers else lambda tile, _: self._start_head(Const(tile))
        return tuple(start(tile, Const(0)) for tile in range(self.slots))

    def numbers(self, product: str) -> range:
        """The tiles of one product."""
        found = [number for number, tile in enumerate(self.tiles) if tile.product == product]
        return range(found[0], found[-1] + 1)

    def arrive(self, number: int) -> Op:
        return Wait(SemaphoreRef(RING, self._slot(number, Counter(LAYER))), self.tiles[number].rows)

    def region(self, number: int) -> Region:
        return Region(RING, self.tiles[number].rows, slot=self._slot(number, Counter(LAYER)))

    def refill(self, number: int) -> tuple[Op, ...]:
        """The tile a ring ahead, into the slot of this one: of this layer, the next one, or the head after the last."""
        ahead, here = number + self.slots, Counter(LAYER)
        if ahead < len(self.tiles):
            return (self._start(ahead, here),)
        ahead -= len(self.tiles)
        last = Const(self.layers - 1)
        more = When((Compare("<", here, last),), (self._start(ahead, add(here, 1)),))
        after = When((Compare("==", here, last),), (self._start_head(Const(ahead)),))
        return (*((more,) if self.layers > 1 else ()), *((after,) if self.head_tiles else ()))

    def head_loop(self, product) -> tuple[Op, ...]:
        """`product(region, tile)` for every tile of the head, refilled while there is one a ring ahead."""
        here = Counter(HEAD)
        slot = self._head_slot(here)
        use = (
            Wait(SemaphoreRef(RING, slot), self.head.rows),
            *product(Region(RING, self.head.rows, slot=slot), here),
        )
        ahead = add(here, self.slots)
        more = When((Compare("<", ahead, Const(self.head_tiles)),), (self._start_head(ahead),))
        return (Loop(HEAD, Const(self.head_tiles), (*use, more)),)

    @property
    def _layer_rows(self) -> int:
        return sum(tile.rows for tile in self.tiles)

    def _slot(self, number: int, layer: Expr) -> Expr:
        return mod(add(mul(layer, len(self.tiles) % self.slots), number), self.slots)

    def _head_slot(self, tile: Expr) -> Expr:
        return mod(add(tile, self.layers * len(self.tiles) % self.slots), self.slots)

    def _start(self, number: int, layer: Expr) -> Op:
        rows, slot = self.tiles[number].rows, self._slot(number, layer)
        offset = add(mul(layer, self._layer_rows), sum(tile.rows for tile in self.tiles[:number]))
        return Start(Region(WEIGHTS, rows, offset), Region(RING, rows, slot=slot), SemaphoreRef(RING, slot))

    def _start_head(self, tile: Expr) -> Op:
        rows, slot = self.head.rows, self._head_slot(tile)
        offset = add(mul(tile, rows), self.layers * self._layer_rows)
        return Start(Region(WEIGHTS, rows, offset), Region(RING, rows, slot=slot), SemaphoreRef(RING, slot))
