"""Absorbed latent attention of consecutive tokens of one sequence: every row meets every tile, which is fetched once.

The queries of a head lie as `rows` rows below each other, those of all heads below those; `latent.py` says how a tile
lies.
"""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.token_attention import mask_bias, softmax_of_tile
from schedc.backends.pallas.operations.words import CACHED, DTYPES, LANES, dot, dot_transposed, join, split, stack

DOT_ROWS = 256
"""Rows of queries a dot, at most: what the MXU takes at once."""

LATENT_REGISTERS = 512
"""Vector registers of scores at once. They spill, which costs less than to wait for the MXU between fewer."""


def attend_latent_tokens(
    q, kv, state, low=(), high=(), *, first, rows, heads, rank, panels, tokens, soft_cap, dtype
):  # fmt: skip
    """Fold one tile of `tokens` positions into the online softmax of every row.

    q f32[panel][head][rows]; kv a tile of chunks of `panels` panels, the first of which are the latents;
    state[latent panels + 2] holds the weighted sum of latents, then the maximum and the sum of the weights, laid out
    like q. Row t sees low[t] <= i < high[t] of the tile, or without them all of it; the first tile (`first`) starts
    the softmax.
    """
    latent_panels, block = -(-rank // LANES), heads * rows
    stored, chunk_tokens, dtype = CACHED[dtype]
    chunks = tokens // chunk_tokens
    bias = mask_bias(low, high, rows, tokens) if low else None

    def latents(count):
        """The first `count` panels of the tokens of the tile, side by side."""

        def panel(index):
            parts = [kv[pl.ds((chunk * panels + index) * 8, 8), :] for chunk in range(chunks)]
            return pltpu.bitcast(stack(parts), stored).astype(DTYPES[dtype])

        return join([panel(index) for index in range(count)])

    def loaded(ref, section, part):
        return pltpu.bitcast(ref[pl.ds(section * block + part.start, len(part)), :], jnp.float32)

    def score(part):
        queries = join([loaded(q, p, part).astype(DTYPES[dtype]) for p in range(panels)])
        return dot_transposed(queries, latents(panels), dtype)

    height = max(1, DOT_ROWS // rows) * rows
    parts = [range(begin, min(begin + height, block)) for begin in range(0, block, height)]
    at_once = max(1, LATENT_REGISTERS * 8 * LANES // (height * tokens))
    for begin in range(0, len(parts), at_once):
        some = parts[begin : begin + at_once]
        scores = [score(part) for part in some]
        before = [None if first else [loaded(state, latent_panels + i, part)[:, :1] for i in (0, 1)] for part in some]
        folded = [softmax_of_tile(s, bias, soft_cap, b) for s, b in zip(scores, before, strict=True)]
        gained = [dot(weights.astype(DTYPES[dtype]), latents(latent_panels), dtype) for weights, *_ in folded]
        for part, sums, (_, top, amount, scale) in zip(some, gained, folded, strict=True):
            for p, value in enumerate(split(sums, len(part), latent_panels)):
                total = value if first else loaded(state, p, part) * scale + value
                state[pl.ds(p * block + part.start, len(part)), :] = pltpu.bitcast(total, jnp.int32)
            for i, column in enumerate((top, amount)):
                wide = jnp.broadcast_to(column, (len(part), LANES))
                state[pl.ds((latent_panels + i) * block + part.start, len(part)), :] = pltpu.bitcast(wide, jnp.int32)
