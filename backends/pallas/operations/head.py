"""The output projection and the arg-max over the vocabulary."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import (
    LANES,
    lane_index,
    load_operand,
    load_panels,
    split,
    store_panels,
)


def head_start(best, *, rows):
    """The running maximum f32[rows, 128] and its id f32[rows, 128], one candidate a lane."""
    smallest = jnp.full((rows, LANES), -jnp.inf, jnp.float32)
    store_panels(best, rows, [smallest, jnp.zeros((rows, LANES), jnp.float32)])


def head(
    x, w, best, logits=None, *, tile, first, count, rows, depth, panels, dtype, multiplier, soft_cap, product, sequences
):
    """Fold tile number `tile` into the running maximum. Ids are exact in f32.

    Column i of all tiles is the id `first` + i, and those from `count` on are none.
    """
    result = product(load_operand(x, rows, depth, dtype), w, sequences, depth, panels, dtype)
    value, index = load_panels(best, rows, 2)
    scores = [panel * multiplier for panel in split(result, rows, panels)]
    if soft_cap > 0.0:
        scores = [soft_cap * jnp.tanh(panel * (1.0 / soft_cap)) for panel in scores]
    if logits is not None:
        store_panels(logits, rows, scores)
    for panel in range(panels):
        columns = lane_index(rows) + (tile * panels + panel) * LANES
        better = (scores[panel] > value) & (columns < count)
        value = jnp.where(better, scores[panel], value)
        index = jnp.where(better, (columns + first).astype(jnp.float32), index)
    store_panels(best, rows, [value, index])


def head_finish(best, out, active, *, rows, sequences, devices):
    """ids int32[rows, 128], the same in every lane: the lowest id of the largest logit, -1 where a row is inactive.

    `best` has the candidates of all devices, one after the other in the order of their ids.
    """
    value, index, *others = load_panels(best, rows, 2 * devices)
    for other, ids in zip(others[::2], others[1::2], strict=True):
        better = other > value
        value, index = jnp.where(better, other, value), jnp.where(better, ids, index)
    top = jnp.max(value, axis=1, keepdims=True)
    lowest = jnp.min(jnp.where(value == top, index, jnp.float32(2**24)), axis=1, keepdims=True)
    ids = jnp.broadcast_to(lowest.astype(jnp.int32), (rows, LANES))
    row = lax.broadcasted_iota(jnp.int32, (rows, LANES), 0)
    for sequence in range(sequences):
        ids = jnp.where((row == sequence) & (active[sequence] == 0), -1, ids)
    out[...] = ids
