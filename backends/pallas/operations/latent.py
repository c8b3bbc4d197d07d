"""Multi-head latent attention, absorbed: all heads attend to the same cached latents.

A token of the cache is its latent in whole panels and then the shared key in panels of its own. The queries of a
sequence lie as `heads` rows (padded to a multiple of 8): what of them is multiplied by latents, then what is by shared
keys. So a tile is two dots a sequence, with all of the tile and with its latents.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import MASKED, load_rows, rotate, store_rows
from schedc.backends.pallas.operations.norm import norm_vectors, normalised
from schedc.backends.pallas.operations.words import (
    CACHED,
    DTYPES,
    LANES,
    dot,
    dot_transposed,
    join,
    load_operand,
    load_panels,
    operand_words,
    split,
    stack,
    store_operand,
    store_panels,
    widen,
)


def latent_rope(rope, rows, panels):
    """cos and sin f32[rows, panels * 128] of rows [row][panel][cos, sin]."""
    return [join([load_rows(rope, 2 * p + side, rows, 2 * panels) for p in range(panels)]) for side in (0, 1)]


def latent_token(y, kv, weight=None, bias=None, rope=None, *, rows, rank, rope_dim, rotary, norm_eps, norm_kind):
    """The new token's row of the cache: norm(latent), rope(shared key).

    y f32[rows, latent panels | shared key panels]; kv f32[row][panel], padded to 8 rows.
    """
    latent_panels, key_panels = -(-rank // LANES), -(-rope_dim // LANES)
    panels = load_panels(y, rows, latent_panels + key_panels)
    gain, shift = norm_vectors(weight, bias, latent_panels)
    latent = normalised(panels[:latent_panels], gain, shift, columns=rank, eps=norm_eps, kind=norm_kind)
    key = join(panels[latent_panels:])
    if rotary:
        key = rotate(key, *latent_rope(rope, rows, key_panels), rotary // 2)
    stride = -(-(latent_panels + key_panels) // 8) * 8
    for p, value in enumerate(latent + split(key, rows, key_panels)):
        store_rows(kv, p, rows, stride, value)


def latent_queries(y, nope, turned, rope=None, *, rows, heads, slots, nope_dim, rope_dim, rotary, dtype):
    """Queries apart: what latents are multiplied by as left sides, the rest rotated.

    y f32[rows, heads * nope_dim, then heads * rope_dim]; nope dtype[slot] left sides [rows, nope_dim], zeros in slots
    beyond the heads; turned f32[head][rows, rope_dim].
    """
    panels, key_panels = -(-nope_dim // LANES), -(-rope_dim // LANES)
    projected = join(load_panels(y, rows, -(-heads * (nope_dim + rope_dim) // LANES)))
    size = panels * operand_words(rows, dtype)
    for head in range(slots):
        own = projected[:, head * nope_dim : (head + 1) * nope_dim] if head < heads else jnp.zeros((rows, nope_dim))
        values = split(widen(own.astype(jnp.float32), panels * LANES), rows, panels)
        store_operand(nope.at[pl.ds(head * size, size), :], rows, values, dtype)
    first = heads * nope_dim
    own = [projected[:, first + head * rope_dim : first + (head + 1) * rope_dim] for head in range(heads)]
    keys = stack([widen(value, key_panels * LANES) for value in own])
    if rotary:
        cos, sin = latent_rope(rope, rows, key_panels)
        keys = rotate(keys, stack([cos] * heads), stack([sin] * heads), rotary // 2)
    parts = [keys[head * rows : (head + 1) * rows] for head in range(heads)]
    store_panels(turned, rows, [panel for part in parts for panel in split(part, rows, key_panels)])


def each_head(x, w, out, *, rows, heads, depth, panels, dtype, product, sequences):
    """out f32[head][rows, panels * 128] = x[head][rows, depth] · w[head][depth, panels * 128]: one tile of heads."""
    size, words = -(-depth // LANES) * operand_words(rows, dtype), w.shape[0] // heads
    for head in range(heads):
        left = load_operand(x.at[pl.ds(head * size, size), :], rows, depth, dtype)
        result = product(left, w.at[pl.ds(head * words, words), :], sequences, depth, panels, dtype)
        store_panels(out.at[pl.ds(head * panels * rows, panels * rows), :], rows, split(result, rows, panels))


def gather_queries(absorbed, turned, q, *, rows, heads, rank, rope_dim, scale, heads_first=False):
    """scale · the queries of a sequence's heads below each other: q f32[row][panel][head], heads padded to 8.

    With `heads_first` those of a head's rows are: q f32[panel][head][row].
    """
    panels, key_panels = -(-rank // LANES), -(-rope_dim // LANES)
    padded = -(-heads // 8) * 8
    stride = (panels + key_panels) * padded
    for head in range(heads):
        values = load_panels(absorbed.at[pl.ds(head * panels * rows, panels * rows), :], rows, panels)
        values += load_panels(turned.at[pl.ds(head * key_panels * rows, key_panels * rows), :], rows, key_panels)
        for p, value in enumerate(values):
            if heads_first:
                store_panels(q.at[pl.ds((p * heads + head) * rows, rows), :], rows, [value * scale])
            else:
                store_rows(q, p * padded + head, rows, stride, value * scale)


def attend_latent(q, kv, state, *, low, high, first, sequences, heads, rank, panels, tokens, soft_cap, dtype):
    """Fold one tile of `tokens` positions of each sequence into its online softmax.

    q f32[sequence][panel][head]; kv[sequence] a tile of chunks of `panels` panels, the first of which are the latents;
    state[sequence][latent panels + 2] holds the weighted sum of latents, then the maximum and the sum of the weights,
    laid out like q. Positions outside low[s] <= i < high[s] of the tile do not count; the first tile (`first`) starts
    the softmax.
    """
    latent_panels, padded = -(-rank // LANES), -(-heads // 8) * 8
    stored, chunk_tokens, dtype = CACHED[dtype]
    chunks = tokens // chunk_tokens
    tile_rows = chunks * panels * 8
    state_rows = (latent_panels + 2) * padded

    def latents(s, count):
        """The first `count` panels of the tokens of a tile, side by side."""
        tile = kv[pl.ds(s * tile_rows, tile_rows), :]

        def panel(index):
            rows = [tile[(chunk * panels + index) * 8 : (chunk * panels + index + 1) * 8] for chunk in range(chunks)]
            return pltpu.bitcast(stack(rows), stored).astype(DTYPES[dtype])

        return join([panel(index) for index in range(count)])

    def section(s, number):
        return pltpu.bitcast(state[pl.ds(s * state_rows + number * padded, padded), :], jnp.float32)

    def queries(s):
        whole = pltpu.bitcast(q[pl.ds(s * panels * padded, panels * padded), :], jnp.float32).astype(DTYPES[dtype])
        return join([whole[p * padded : (p + 1) * padded] for p in range(panels)])

    scores = [dot_transposed(queries(s), latents(s, panels), dtype) for s in range(sequences)]
    index = lax.broadcasted_iota(jnp.int32, (padded, tokens), 1)
    weights, scales, tops, amounts = [], [], [], []
    for s, score in enumerate(scores):
        if soft_cap > 0.0:
            score = soft_cap * jnp.tanh(score * (1.0 / soft_cap))
        counts = (index >= low[s]) & (index < high[s])
        top = jnp.max(jnp.where(counts, score, MASKED), axis=1, keepdims=True)
        if not first:
            earlier = section(s, latent_panels)[:, :1]
            top = jnp.maximum(earlier, top)
            scales.append(jnp.exp(earlier - top))
        weight = jnp.where(counts, jnp.exp(score - top), 0.0)
        amount = jnp.sum(weight, axis=1, keepdims=True)
        tops.append(top)
        amounts.append(amount if first else section(s, latent_panels + 1)[:, :1] * scales[-1] + amount)
        weights.append(weight.astype(DTYPES[dtype]))
    gained = [dot(weights[s], latents(s, latent_panels), dtype) for s in range(sequences)]
    for s in range(sequences):
        sums = split(gained[s], padded, latent_panels)
        if not first:
            sums = [section(s, p) * scales[s] + value for p, value in enumerate(sums)]
        wide = [jnp.broadcast_to(part[s], (padded, LANES)) for part in (tops, amounts)]
        state[pl.ds(s * state_rows, state_rows), :] = pltpu.bitcast(stack(sums + wide), jnp.int32)


def latent_outputs(state, out, *, rows, heads, slots, rank, dtype, heads_first=False):
    """Of every head the weighted sum of latents over the sum of weights, as a left side [rows, rank].

    state f32[row][panels + 2][head], or with `heads_first` [panels + 2][head][row]; out dtype[slot], zeros in slots
    beyond the heads.
    """
    panels, padded = -(-rank // LANES), -(-heads // 8) * 8
    stride, size = (panels + 2) * padded, panels * operand_words(rows, dtype)

    def section(number, head):
        if heads_first:
            return load_panels(state.at[pl.ds((number * heads + head) * rows, rows), :], rows, 1)[0]
        return load_rows(state, number * padded + head, rows, stride)

    for head in range(slots):
        if head < heads:
            share = 1.0 / jnp.maximum(section(panels + 1, head), 1e-30)
            values = [section(p, head) * share for p in range(panels)]
        else:
            values = [jnp.zeros((rows, LANES), jnp.float32)] * panels
        store_operand(out.at[pl.ds(head * size, size), :], rows, values, dtype)


def join_values(y, out, gate=None, *, rows, heads, value_dim, dtype):
    """The heads' outputs as a left side [rows, heads * value_dim], times sigmoid(gate).

    y f32[head][rows, value_dim], each in whole panels; gate f32[rows, heads * value_dim].
    """
    panels, width = -(-value_dim // LANES), heads * value_dim
    values = load_panels(y, rows, heads * panels)
    parts = [join(values[head * panels : (head + 1) * panels])[:, :value_dim] for head in range(heads)]
    columns = widen(join(parts), -(-width // LANES) * LANES)
    whole = split(columns, rows, columns.shape[1] // LANES)
    if gate is not None:
        opened = load_panels(gate, rows, len(whole))
        whole = [value / (1.0 + jnp.exp(-g)) for value, g in zip(whole, opened, strict=True)]
    store_operand(out, rows, whole, dtype)
