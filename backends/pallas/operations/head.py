"""The output projection and the arg-max over the vocabulary."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import (
    LANES,
    dot,
    lane_index,
    load_operand,
    load_panel,
    load_weight,
    store_panel,
)


def head_start(best, *, rows):
    """The running maximum f32[rows, 128] and its id f32[rows, 128], one candidate a lane."""
    store_panel(best, rows, 0, jnp.full((rows, LANES), -jnp.inf, jnp.float32))
    store_panel(best, rows, 1, jnp.zeros((rows, LANES), jnp.float32))


def head(x, w, best, logits=None, *, tile, rows, depth, panels, vocab, dtype, multiplier, soft_cap):
    """Fold one tile of the vocabulary into the running maximum; `tile` is its number. Ids are exact in f32."""
    product = dot(load_operand(x, rows, depth, dtype), load_weight(w, depth, panels, dtype), dtype)
    value, index = load_panel(best, rows, 0), load_panel(best, rows, 1)
    for panel in range(panels):
        scores = product[:rows, panel * LANES : (panel + 1) * LANES]
        if multiplier != 1.0:
            scores = scores * multiplier
        if soft_cap > 0.0:
            scores = soft_cap * jnp.tanh(scores * (1.0 / soft_cap))
        if logits is not None:
            store_panel(logits, rows, panel, scores)
        ids = lane_index(rows) + (tile * panels + panel) * LANES
        better = (scores > value) & (ids < vocab)
        value = jnp.where(better, scores, value)
        index = jnp.where(better, ids.astype(jnp.float32), index)
    store_panel(best, rows, 0, value)
    store_panel(best, rows, 1, index)


def head_finish(best, out, active, *, rows, sequences):
    """ids int32[rows, 128], the same in every lane: the lowest id of the largest logit, -1 where a row is inactive."""
    value, index = load_panel(best, rows, 0), load_panel(best, rows, 1)
    top = jnp.max(value, axis=1, keepdims=True)
    lowest = jnp.min(jnp.where(value == top, index, jnp.float32(2**24)), axis=1, keepdims=True)
    ids = jnp.broadcast_to(lowest.astype(jnp.int32), (rows, LANES))
    row = lax.broadcasted_iota(jnp.int32, (rows, LANES), 0)
    for sequence in range(sequences):
        ids = jnp.where((row == sequence) & (active[sequence] == 0), -1, ids)
    out[...] = ids
