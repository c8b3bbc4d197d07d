"""Grouped-query attention of consecutive tokens of one sequence: every row meets every tile, which is fetched once.

The queries of a head lie as `rows` rows below each other, those of the heads of a kv head below those: one dot of all
with the keys of a tile, and one with its values. `attention.py` says how a tile lies.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import MASKED
from schedc.backends.pallas.operations.words import CACHED, DTYPES, LANES, dot, dot_transposed, stack

UNSEEN = -1e29
"""The least maximum of a softmax: far above MASKED, so that what is masked weighs nothing even where all is."""

SCORE_REGISTERS = 128
"""Vector registers of scores at once: enough independent chains to fill the MXU, few enough to spill little."""


def mask_bias(low, high, rows, tokens):
    """f32[rows, tokens] to be added to scores: 0 where row t sees the position, low[t] <= i < high[t], else MASKED."""
    row = lax.broadcasted_iota(jnp.int32, (rows, LANES), 0)
    first = last = jnp.zeros((rows, LANES), jnp.int32)
    for t, (begin, end) in enumerate(zip(low, high, strict=True)):
        first, last = jnp.where(row == t, begin, first), jnp.where(row == t, end, last)
    index = lax.broadcasted_iota(jnp.int32, (rows, tokens), 1)
    return jnp.where((index >= first[:, :1]) & (index < last[:, :1]), 0.0, MASKED)


def softmax_of_tile(scores, bias, soft_cap, before):
    """The weights of a tile, with the maximum, the sum and the scale of what was `before`, (maximum, sum) or None."""
    if soft_cap > 0.0:
        scores = soft_cap * jnp.tanh(scores * (1.0 / soft_cap))
    if bias is not None:
        scores = scores + stack([bias] * (scores.shape[0] // bias.shape[0]))
    top = jnp.maximum(jnp.max(scores, axis=1, keepdims=True), UNSEEN)
    if before is not None:
        top = jnp.maximum(before[0], top)
    weights = jnp.exp(scores - top)
    amount = jnp.sum(weights, axis=1, keepdims=True)
    if before is None:
        return weights, top, amount, None
    scale = jnp.exp(before[0] - top)
    return weights, top, before[1] * scale + amount, scale


def attend_tokens(
    q, kv, state, low=(), high=(), *, first, rows, kv_heads, group, head_dim, tokens, soft_cap, dtype
):  # fmt: skip
    """Fold one tile of `tokens` positions into the online softmax of every row.

    q f32[panel][kv head][group][rows]; kv a tile of chunks; state[panels + 2] holds the weighted sum, then the maximum
    and the sum of the weights, laid out like q. Row t sees low[t] <= i < high[t] of the tile, or without them all of
    it; the first tile (`first`) starts the softmax.
    """
    panels = -(-head_dim // LANES)
    cache_panels = kv_heads if head_dim <= 64 else 2 * panels * kv_heads
    stored, chunk_tokens, dtype = CACHED[dtype]
    chunks, each = tokens // chunk_tokens, group * rows
    block = kv_heads * each
    bias = mask_bias(low, high, rows, tokens) if low else None

    def panel_of(index):
        parts = [kv[pl.ds((chunk * cache_panels + index) * 8, 8), :] for chunk in range(chunks)]
        return pltpu.bitcast(stack(parts), stored).astype(DTYPES[dtype])

    def panel_index(h, p, side):
        return h if head_dim <= 64 else (h * 2 + side) * panels + p

    def place(section, h):
        return pl.ds(section * block + h * each, each)

    def loaded(ref, section, h):
        return pltpu.bitcast(ref[place(section, h), :], jnp.float32)

    def score(h):
        parts = [
            dot_transposed(loaded(q, p, h).astype(DTYPES[dtype]), panel_of(panel_index(h, p, 0)), dtype)
            for p in range(panels)
        ]
        return sum(parts[1:], parts[0])

    at_once = max(1, SCORE_REGISTERS * 8 * LANES // (each * tokens))
    for begin in range(0, kv_heads, at_once):
        heads = range(begin, min(begin + at_once, kv_heads))
        scores = [score(h) for h in heads]
        before = [None if first else [loaded(state, panels + i, h)[:, :1] for i in (0, 1)] for h in heads]
        folded = [softmax_of_tile(s, bias, soft_cap, b) for s, b in zip(scores, before, strict=True)]
        weights = [w.astype(DTYPES[dtype]) for w, *_ in folded]
        gained = [
            [dot(w, panel_of(panel_index(h, p, 1)), dtype) for p in range(panels)]
            for h, w in zip(heads, weights, strict=True)
        ]
        for h, sums, (_, top, amount, scale) in zip(heads, gained, folded, strict=True):
            for p, value in enumerate(sums):
                total = value if first else loaded(state, p, h) * scale + value
                state[place(p, h), :] = pltpu.bitcast(total, jnp.int32)
            for i, column in enumerate((top, amount)):
                state[place(panels + i, h), :] = pltpu.bitcast(jnp.broadcast_to(column, (each, LANES)), jnp.int32)
