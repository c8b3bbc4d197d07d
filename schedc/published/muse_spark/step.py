"""The published step as a program: prologue, the layers, the head. The embedding and the last psum are XLA's."""

from __future__ import annotations

from schedc.ir.expr import Const
from schedc.ir.program import (
    Array,
    Attribute,
    Barrier,
    Buffer,
    Loop,
    Op,
    Phase,
    Pool,
    Program,
    Region,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
)
from schedc.lower.graph import Declarations
from schedc.lower.parts import WORK, compute
from schedc.published.muse_spark.exchanges import DEVICES
from schedc.published.muse_spark.layer import HIDDEN, NORMED, Layer, X, tiles_of
from schedc.published.muse_spark.prices import Prices
from schedc.published.muse_spark.tiles import LAYER, Tile, TileRing
from schedc.published.muse_spark.variant import TILE_ROWS, Variant

HEAD_TILES = {"bf16": 198, "int8": 99}
"""202,048 x 8,192 weights over eight devices are 394.6 MiB in bf16."""


def ring_of(variant: Variant) -> TileRing:
    head_tile = Tile("head", TILE_ROWS, HIDDEN, 1 if variant.dense == "bf16" else 2)
    tiles, head_tiles = tiles_of(variant), HEAD_TILES[variant.dense]
    return TileRing(variant.ring_slots, TILE_ROWS, variant.layers, tiles, head_tile, head_tiles)


def step(variant: Variant, prices: Prices | None = None) -> Program:
    """One decode step of `variant` on one of the eight devices."""
    ring = ring_of(variant)
    layer = Layer(variant, prices or Prices.published(), ring)
    own = Declarations(
        (Buffer("best", WORK, 16), Buffer("scores", WORK, 8)),
        (Array("residual", 512, "input"), Array("best_out", 16, "output")),
        semaphores=(Semaphore("residual"), Semaphore("best")),
    )
    declared = own + ring.declarations() + layer.declarations()
    begin = (Start(Region("residual", 512), X, SemaphoreRef("residual")), *ring.prime(), Barrier())
    body: tuple[Op, ...] = (
        Phase("prologue", (*begin, Wait(SemaphoreRef("residual"), 512))),
        Loop(LAYER, Const(variant.layers), layer.body()),
        *head(variant, ring),
    )
    pools = tuple(Pool(name) for name in dict.fromkeys(buffer.pool for buffer in declared.buffers))
    attributes: dict[str, Attribute] = {
        "model": "muse-spark",
        "rows": variant.rows,
        "experts": variant.experts,
        "dense": variant.dense,
    }
    name = f"muse_spark_{variant.experts}_{variant.dense}_{variant.rows}"
    return Program(
        name, pools, declared.buffers, declared.arrays, declared.scalars, declared.semaphores, body, DEVICES,
        tuple(attributes.items()),
    )  # fmt: skip


def head(variant: Variant, ring: TileRing) -> tuple[Op, ...]:
    """Final norm, the vocabulary tile by tile with a running maximum, the best of this device to HBM."""
    rows = variant.padded_rows
    shape: dict[str, Attribute] = {"rows": rows, "columns": HIDDEN}
    norm = compute("norm", {"x": X}, {"out": NORMED}, attributes=shape, kind="rms", dtype="bf16")
    best = Region("best", 16)

    def product(weights: Region, tile) -> tuple[Op, ...]:
        form: dict[str, Attribute] = (
            {"dtype": "bf16", "product": "bf16_direct"} if variant.dense == "bf16" else {"dtype": variant.dense}
        )
        sizes: dict[str, Attribute] = {"rows": rows, "depth": HIDDEN, "panels": ring.head.panels}
        return (
            compute(
                "head", {"x": NORMED, "w": weights}, updates={"best": best}, scalars={"tile": tile},
                attributes=sizes | form,
            ),
        )  # fmt: skip

    out = Start(best, Region("best_out", 16), SemaphoreRef("best"))
    return (
        Phase("final_norm", (norm, compute("head_start", writes={"best": best}, rows=rows))),
        Phase("head", ring.head_loop(product)),
        Phase(
            "finish", (compute("head_finish", updates={"best": best}, rows=rows), out, Wait(SemaphoreRef("best"), 16))
        ),
    )
