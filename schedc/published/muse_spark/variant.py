"""What differs between the published measurements: formats, rows, and the settings that their authors tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Experts = Literal["int4", "nvfp4"]
Dense = Literal["bf16", "int8"]
Wire = Literal["bf16", "f32"]

LAYERS = 62
TILE_ROWS = 4096
"""Of 512 bytes: 2 MiB."""


@dataclass(frozen=True)
class Variant:
    """One kernel at one batch. The defaults are those of the final kernels."""

    rows: int = 1
    experts: Experts = "int4"
    dense: Dense = "bf16"
    layers: int = LAYERS
    ring_slots: int = 12
    expert_slots: int = 4
    defer_refills: bool = True
    """Refills of the ring by the tiles of the projection before the experts go behind the first experts' transfers, to
    where the projection has been gathered."""
    early_kv: bool = True
    """Tiles of the cache are started at the layer's start, not at the attention."""
    wire: Wire = "bf16"
    """Of the all-reduces; the gathers are of bf16 operands."""
    hierarchical: bool = False
    """All-reduces chip by chip first."""

    @property
    def padded_rows(self) -> int:
        return -(-self.rows // 8) * 8
