"""Expanded latent attention of consecutive tokens of one sequence: every row meets every tile, fetched once.

The queries of a head lie as `rows` rows below each other, those of all heads below those; `expanded.py` says how a tile
lies.
"""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.token_attention import SCORE_REGISTERS, mask_bias, softmax_of_tile
from schedc.backends.pallas.operations.words import CACHED, DTYPES, LANES, dot, dot_transposed, join, split, stack


def attend_expanded_tokens(
    q, kv, state, low=(), high=(), *, first, rows, heads, head_dim, value_dim, tokens, soft_cap, dtype
):  # fmt: skip
    """Fold one tile of `tokens` positions into the online softmax of every row.

    q f32[key panel][head][rows]; kv a tile of chunks; state[value panels + 2] holds the weighted sum of values, then
    the maximum and the sum of the weights, laid out like q. Row t sees low[t] <= i < high[t] of the tile, or without
    them all of it; the first tile (`first`) starts the softmax.
    """
    key_panels, value_panels = -(-head_dim // LANES), -(-value_dim // LANES)
    each, block = key_panels + value_panels, heads * rows
    stored, chunk_tokens, dtype = CACHED[dtype]
    chunks = tokens // chunk_tokens
    bias = mask_bias(low, high, rows, tokens) if low else None

    def panels_of(head, begin, count):
        """`count` panels of a head's tokens, side by side."""

        def panel(index):
            parts = [kv[pl.ds((chunk * heads * each + index) * 8, 8), :] for chunk in range(chunks)]
            return pltpu.bitcast(stack(parts), stored).astype(DTYPES[dtype])

        return join([panel(head * each + begin + p) for p in range(count)])

    def place(section, head):
        return pl.ds(section * block + head * rows, rows)

    def loaded(ref, section, head):
        return pltpu.bitcast(ref[place(section, head), :], jnp.float32)

    def score(head):
        query = join([loaded(q, p, head).astype(DTYPES[dtype]) for p in range(key_panels)])
        return dot_transposed(query, panels_of(head, 0, key_panels), dtype)

    at_once = max(1, SCORE_REGISTERS * 8 * LANES // (rows * tokens))
    for begin in range(0, heads, at_once):
        some = range(begin, min(begin + at_once, heads))
        scores = [score(head) for head in some]
        before = [None if first else [loaded(state, value_panels + i, head)[:, :1] for i in (0, 1)] for head in some]
        folded = [softmax_of_tile(s, bias, soft_cap, b) for s, b in zip(scores, before, strict=True)]
        gained = [
            dot(weights.astype(DTYPES[dtype]), panels_of(head, key_panels, value_panels), dtype)
            for head, (weights, *_) in zip(some, folded, strict=True)
        ]
        for head, sums, (_, top, amount, scale) in zip(some, gained, folded, strict=True):
            for p, value in enumerate(split(sums, rows, value_panels)):
                total = value if first else loaded(state, p, head) * scale + value
                state[place(p, head), :] = pltpu.bitcast(total, jnp.int32)
            for i, column in enumerate((top, amount)):
                state[place(value_panels + i, head), :] = pltpu.bitcast(
                    jnp.broadcast_to(column, (rows, LANES)), jnp.int32
                )
