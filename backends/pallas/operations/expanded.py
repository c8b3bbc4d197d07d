"""Multi-head latent attention over a cache of keys and values of every head, made of the latent of each token.

A token of the cache is, head by head, its key (what was made of the latent, then the shared key) in whole panels and
its value in panels of its own. A dot has eight heads as its rows, each meeting its own keys: the left side is zero
elsewhere, and of the weighted sums only those of a head's own values are kept. So eight heads share the registers of
one softmax, at the price of no dot.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import MASKED, load_rows, rotate, store_rows
from schedc.backends.pallas.operations.latent import latent_rope
from schedc.backends.pallas.operations.norm import norm_vectors, normalised
from schedc.backends.pallas.operations.words import (
    CACHED,
    DTYPES,
    LANES,
    dot,
    dot_transposed,
    join,
    load_panels,
    split,
    stack,
    store_operand,
    store_panels,
    widen,
)


def expanded_latent(
    y, latent, key, weight=None, bias=None, rope=None, *, rows, rank, rope_dim, rotary, norm_eps, norm_kind, dtype
):  # fmt: skip
    """The new token's latent, normalised, as a left side [rows, rank], and its shared key, rotated.

    y f32[rows, latent panels | shared key panels]; key f32[rows, rope_dim].
    """
    latent_panels, key_panels = -(-rank // LANES), -(-rope_dim // LANES)
    panels = load_panels(y, rows, latent_panels + key_panels)
    gain, shift = norm_vectors(weight, bias, latent_panels)
    normed = normalised(panels[:latent_panels], gain, shift, columns=rank, eps=norm_eps, kind=norm_kind)
    store_operand(latent, rows, normed, dtype)
    turned = join(panels[latent_panels:])
    if rotary:
        turned = rotate(turned, *latent_rope(rope, rows, key_panels), rotary // 2)
    store_panels(key, rows, split(turned, rows, key_panels))


def expanded_token(y, key, kv, *, rows, heads, nope_dim, rope_dim, value_dim):
    """The new token's row of the cache, head by head its key and its value.

    y f32[rows, heads * nope_dim, then heads * value_dim]; key f32[rows, rope_dim]; kv f32[row][head][panel], padded to
    8 rows.
    """
    key_panels, value_panels = -(-(nope_dim + rope_dim) // LANES), -(-value_dim // LANES)
    each, first = key_panels + value_panels, heads * nope_dim
    made = join(load_panels(y, rows, -(-heads * (nope_dim + value_dim) // LANES)))
    shared = join(load_panels(key, rows, -(-rope_dim // LANES)))[:, :rope_dim]
    stride = -(-heads * each // 8) * 8
    for head in range(heads):
        own = join([made[:, head * nope_dim : (head + 1) * nope_dim], shared])
        value = made[:, first + head * value_dim : first + (head + 1) * value_dim]
        parts = split(widen(own, key_panels * LANES), rows, key_panels)
        parts += split(widen(value, value_panels * LANES), rows, value_panels)
        for p, part in enumerate(parts):
            store_rows(kv, head * each + p, rows, stride, part)


def expanded_queries(y, q, rope=None, *, rows, heads, nope_dim, rope_dim, rotary, scale, heads_first=False):
    """scale · the queries of a sequence's heads below each other, the end of each rotated: q f32[row][panel][head].

    y f32[rows, heads * nope_dim, then heads * rope_dim]; heads are padded to 8. With `heads_first` the rows of a head
    are below each other: q f32[panel][head][row].
    """
    panels, key_panels, padded = -(-(nope_dim + rope_dim) // LANES), -(-rope_dim // LANES), -(-heads // 8) * 8
    projected = join(load_panels(y, rows, -(-heads * (nope_dim + rope_dim) // LANES)))
    first = heads * nope_dim
    ends = [projected[:, first + head * rope_dim : first + (head + 1) * rope_dim] for head in range(heads)]
    turned = stack([widen(end, key_panels * LANES) for end in ends])
    if rotary:
        cos, sin = latent_rope(rope, rows, key_panels)
        turned = rotate(turned, stack([cos] * heads), stack([sin] * heads), rotary // 2)
    for head in range(heads):
        end = turned[head * rows : (head + 1) * rows, :rope_dim]
        whole = widen(join([projected[:, head * nope_dim : (head + 1) * nope_dim], end]), panels * LANES)
        for p, value in enumerate(split(whole * scale, rows, panels)):
            if heads_first:
                store_panels(q.at[pl.ds((p * heads + head) * rows, rows), :], rows, [value])
            else:
                store_rows(q, p * padded + head, rows, panels * padded, value)


def attend_expanded(
    q, kv, state, *, low, high, first, sequences, heads, head_dim, value_dim, tokens, soft_cap, dtype
):  # fmt: skip
    """Fold one tile of `tokens` positions of each sequence into its online softmax.

    q f32[sequence][key panel][head]; kv[sequence] a tile of chunks; state[sequence][value panels + 2] holds the
    weighted sum of values, then the maximum and the sum of the weights, laid out like q. Positions outside
    low[s] <= i < high[s] of the tile do not count; the first tile (`first`) starts the softmax.
    """
    key_panels, value_panels, padded = -(-head_dim // LANES), -(-value_dim // LANES), -(-heads // 8) * 8
    each = key_panels + value_panels
    stored, chunk_tokens, dtype = CACHED[dtype]
    chunks = tokens // chunk_tokens
    tile_rows, state_rows = chunks * heads * each * 8, (value_panels + 2) * padded
    groups = [(s, range(begin, min(begin + 8, heads))) for s in range(sequences) for begin in range(0, heads, 8)]
    row = lax.broadcasted_iota(jnp.int32, (8, LANES), 0)

    def panel(s, index):
        begin = s * tile_rows + index * 8
        parts = [kv[pl.ds(begin + chunk * heads * each * 8, 8), :] for chunk in range(chunks)]
        return pltpu.bitcast(stack(parts), stored).astype(DTYPES[dtype])

    def keys(s, head):
        return join([panel(s, head * each + p) for p in range(key_panels)])

    def values(s, head):
        return join([panel(s, head * each + key_panels + p) for p in range(value_panels)])

    def own(value, head):
        """Of f32[8 heads, 128] the row of `head`, zeros elsewhere."""
        return jnp.where(row == head % 8, value, 0.0)

    def section(ref, rows, s, number, group):
        return pltpu.bitcast(ref[pl.ds(s * rows + number * padded + group.start, 8), :], jnp.float32)

    def score(s, group):
        whole = [section(q, key_panels * padded, s, p, group) for p in range(key_panels)]
        parts = []
        for head in group:
            query = join([own(value, head) for value in whole]).astype(DTYPES[dtype])
            parts.append(dot_transposed(query, keys(s, head), dtype))
        return sum(parts[1:], parts[0])

    scores = [score(s, group) for s, group in groups]
    index = lax.broadcasted_iota(jnp.int32, (8, tokens), 1)
    weights, scales, tops, amounts = [], [], [], []
    for (s, group), found in zip(groups, scores, strict=True):
        if soft_cap > 0.0:
            found = soft_cap * jnp.tanh(found * (1.0 / soft_cap))
        counts = (index >= low[s]) & (index < high[s])
        top = jnp.max(jnp.where(counts, found, MASKED), axis=1, keepdims=True)
        if not first:
            earlier = section(state, state_rows, s, value_panels, group)[:, :1]
            top = jnp.maximum(earlier, top)
            scales.append(jnp.exp(earlier - top))
        weight = jnp.where(counts, jnp.exp(found - top), 0.0)
        amount = jnp.sum(weight, axis=1, keepdims=True)
        if not first:
            amount = section(state, state_rows, s, value_panels + 1, group)[:, :1] * scales[-1] + amount
        tops.append(top)
        amounts.append(amount)
        weights.append(weight.astype(DTYPES[dtype]))
    gained = []
    for (s, group), weight in zip(groups, weights, strict=True):
        sums = dot(weight, join([values(s, head) for head in group]), dtype)
        panels = split(sums, 8, len(group) * value_panels)
        mine = [[own(panels[i * value_panels + p], head) for i, head in enumerate(group)] for p in range(value_panels)]
        gained.append([sum(parts[1:], parts[0]) for parts in mine])
    for number, (s, group) in enumerate(groups):
        wide = [jnp.broadcast_to(part[number], (8, LANES)) for part in (tops, amounts)]
        for p, value in enumerate(gained[number] + wide):
            if p < value_panels and not first:
                value = section(state, state_rows, s, p, group) * scales[number] + value
            state[pl.ds(s * state_rows + p * padded + group.start, 8), :] = pltpu.bitcast(value, jnp.int32)


def join_expanded(state, out, gate=None, *, rows, heads, value_dim, dtype, heads_first=False):
    """The heads' outputs side by side, weighted sums over the sum of weights, as a left side [rows, heads * value_dim].

    state f32[row][value panels + 2][head], heads padded to 8, or with `heads_first` [value panels + 2][head][row];
    `gate` f32[rows, heads * value_dim]: times its sigmoid.
    """
    panels, padded = -(-value_dim // LANES), -(-heads // 8) * 8

    def section(number, head):
        if heads_first:
            return load_panels(state.at[pl.ds((number * heads + head) * rows, rows), :], rows, 1)[0]
        return load_rows(state, number * padded + head, rows, (panels + 2) * padded)

    joined = []
    for head in range(heads):
        share = 1.0 / jnp.maximum(section(panels + 1, head), 1e-30)
        joined.append(join([section(p, head) * share for p in range(panels)])[:, :value_dim])
    width = -(-heads * value_dim // LANES)
    whole = split(widen(join(joined), width * LANES), rows, width)
    if gate is not None:
        whole = [value / (1.0 + jnp.exp(-g)) for value, g in zip(whole, load_panels(gate, rows, width), strict=True)]
    store_operand(out, rows, whole, dtype)
