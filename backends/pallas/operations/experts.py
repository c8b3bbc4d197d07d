"""What an expert adds to the rows that have chosen it, and to no other."""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.norm import with_bias
from schedc.backends.pallas.operations.words import (
    DTYPES,
    LANES,
    lane_index,
    load_panels,
    operand_words,
    store_operand,
    store_panels,
)


def expert_weight(choices, out, expert, *, rows, top_k):
    """out f32[rows, 128]: in all lanes of a row what it weighs `expert` with; `choices` is that of `route`."""
    height = -(-top_k // 8) * 8
    ids, weights = choices[pl.ds(0, height), :], pltpu.bitcast(choices[pl.ds(height, height), :], jnp.float32)
    by_lane = jnp.sum(jnp.where(ids == expert, weights, 0.0), axis=0, keepdims=True)
    own = jnp.where(lane_index(rows) == row_index(rows), jnp.broadcast_to(by_lane, (rows, LANES)), 0.0)
    store_panels(out, rows, [jnp.broadcast_to(jnp.sum(own, axis=1, keepdims=True), (rows, LANES))])


def row_index(rows):
    return lax.broadcasted_iota(jnp.int32, (rows, LANES), 0)


def weigh_operand(x, weight, out, *, rows, columns, dtype):
    """out = weight · x, both the left side of a dot."""
    panels = -(-columns // LANES)
    scale = load_panels(weight, rows, 1)[0]
    height = operand_words(rows, dtype)
    words = [x[pl.ds(panel * height, height), :] for panel in range(panels)]
    values = [pltpu.bitcast(word, DTYPES[dtype]).astype(jnp.float32)[:rows] for word in words]
    store_operand(out, rows, [value * scale for value in values], dtype)


def add_weighted(y, weight, out, bias=None, *, rows, columns, weighed=False):
    """out += weight · (y + bias) in the rows whose weight is not 0; the others keep their bits, whatever y is there.

    `weighed`: y has been made of an input that was weighed, so it is added as it is.
    """
    panels = -(-columns // LANES)
    scale = load_panels(weight, rows, 1)[0]
    values = with_bias(load_panels(y, rows, panels), bias)
    added = [jnp.where(scale != 0.0, value if weighed else scale * value, 0.0) for value in values]
    store_panels(out, rows, [old + new for old, new in zip(load_panels(out, rows, panels), added, strict=True)])


def gate_rows(logits, y, *, rows, columns, column):
    """y f32[rows, columns] *= sigmoid of column `column` of the logits."""
    own = jnp.where(lane_index(rows) == column % LANES, load_panels(logits, rows, column // LANES + 1)[-1], 0.0)
    gate = 1.0 / (1.0 + jnp.exp(-jnp.sum(own, axis=1, keepdims=True)))
    panels = -(-columns // LANES)
    store_panels(y, rows, [value * gate for value in load_panels(y, rows, panels)])
