"""Streamed weights that are multiplied head by head: a tile is some whole heads."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.lower.graph import LANES, Matrix, ceil_div
from schedc.spec.storage import Dtype
from schedc.weights.formats import FORMATS
from schedc.weights.layout import HeadMatrices, HeadOutputs, PanelMatrix


@dataclass(frozen=True)
class HeadMatrix(Matrix):
    """A matrix [depth, columns] a head, whose columns are `head_panels` whole panels."""

    head_panels: int = 1

    @property
    def units(self) -> int:
        """Heads."""
        return super().units // self.head_panels

    @property
    def unit_rows(self) -> int:
        return self.head_panels * super().unit_rows

    def layout(self, tile_units: int) -> PanelMatrix:
        tiles, panels = ceil_div(self.units, tile_units), tile_units * self.head_panels
        return PanelMatrix(self.name, self.stored, self.layers, self.depth, tiles, panels, self.columns, self.inputs)


@dataclass(frozen=True)
class TransposedHeads:
    """A matrix [depth, width] a head, of `depth` outputs of a weight with `width` inputs."""

    name: str
    dtype: Dtype
    depth: int
    width: int
    blocks: tuple[HeadOutputs, ...]
    layers: tuple[int, ...]

    @property
    def units(self) -> int:
        """Heads."""
        return sum(block.heads for block in self.blocks)

    @property
    def unit_rows(self) -> int:
        return ceil_div(self.width, LANES) * FORMATS[self.dtype].panel_rows(self.depth)

    @property
    def trips(self) -> int:
        return max(1, len(self.layers))

    def layout(self, tile_units: int) -> HeadMatrices:
        tiles = ceil_div(self.units, tile_units)
        return HeadMatrices(self.name, self.dtype, self.layers, self.depth, self.width, tiles, tile_units, self.blocks)
