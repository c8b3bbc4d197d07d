"""Grouped-query attention over a KV cache that arrives in tiles, with an online softmax.

The queries of one sequence and kv head lie as `group` rows (padded to a multiple of 8), so a
tile is two dots per sequence and kv head. All first dots come before all softmaxes and all
second dots: chains that are independent then fill the MXU.

A chunk of the cache is 8 word rows of every panel: 16 bf16 or 8 f32 tokens. A head of up to
64 lanes has one panel [k 64 | v 64], a wider one its k panels and then its v panels.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import (
    DTYPES,
    LANES,
    dot,
    dot_transposed,
    join,
    lane_index,
    load_matrix,
    load_vector,
    store_operand,
    widen,
)

MASKED = -1e30


def store_rows(ref, first, rows, stride, value):
    """Store f32[rows, 128] at every `stride`-th row."""
    ref[pl.ds(first, rows, stride=stride), :] = pltpu.bitcast(value, jnp.int32)


def load_rows(ref, first, rows, stride):
    """f32[rows, 128] from every `stride`-th row."""
    return pltpu.bitcast(ref[pl.ds(first, rows, stride=stride), :], jnp.float32)


def rotate(x, cos, sin, half):
    """Half-rotation of f32[rows, lanes]: x · cos + (x with its two halves of `half` lanes swapped) · sin (signed)."""
    lanes = x.shape[1]
    if lanes == LANES:
        ahead = pltpu.roll(x, LANES - half, 1)
        swapped = ahead if half == 64 else jnp.where(lane_index(x.shape[0]) < half, ahead, pltpu.roll(x, half, 1))
    else:
        swapped = widen(join([x[:, half : 2 * half], x[:, :half]]), lanes)
    return x * cos + swapped * sin


def load_lanes(vector, first, panels):
    """f32[1, panels * 128] of a vector, from panel `first` on."""
    return join([load_vector(vector, first + panel) for panel in range(panels)])


def head_norm(x, weight, *, head_dim, eps):
    """RMSNorm of one head f32[rows, lanes] by weight f32[1, lanes]."""
    return x * lax.rsqrt(jnp.sum(x * x, axis=1, keepdims=True) * (1.0 / head_dim) + eps) * weight


def split_heads(
    y, q, kv, rope=None, q_bias=None, k_bias=None, v_bias=None, q_norm=None, k_norm=None,
    *, rows, heads, kv_heads, head_dim, scale, rotary, norm_eps,
):  # fmt: skip
    """From projections to heads: bias, per-head norm, rotation, scale.

    y f32[rows, (heads + 2·kv_heads)·head_dim]; q f32[row][panel][kv head][group] rows of 128 lanes;
    kv f32[row][kv head][panel]: one row of the cache a panel, padded to 8 rows. `rope` holds [row][cos, sin panels].
    """
    panels = -(-head_dim // LANES)
    lanes = panels * LANES
    group = heads // kv_heads
    padded_group = -(-group // 8) * 8
    width = (heads + 2 * kv_heads) * head_dim
    projected = load_matrix(y, rows, -(-width // LANES))
    if rotary:
        cos, sin = (
            join([load_rows(rope, first + p, rows, 2 * panels) for p in range(panels)]) for first in (0, panels)
        )

    def head(first, index, bias):
        x = widen(projected[:, (first + index) * head_dim : (first + index + 1) * head_dim], lanes)
        return x if bias is None else x + load_lanes(bias, index * panels, panels)

    def finished(x, weight):
        if weight is not None:
            x = head_norm(x, load_lanes(weight, 0, panels), head_dim=head_dim, eps=norm_eps)
        return rotate(x, cos, sin, rotary // 2) if rotary else x

    block = kv_heads * padded_group
    for index in range(heads):
        x = finished(head(0, index, q_bias), q_norm) * scale
        slot = index // group * padded_group + index % group
        for p in range(panels):
            store_rows(q, p * block + slot, rows, panels * block, x[:, p * LANES : (p + 1) * LANES])
    stride = -(-(kv_heads if head_dim <= 64 else 2 * panels * kv_heads) // 8) * 8
    for index in range(kv_heads):
        k, v = finished(head(heads, index, k_bias), k_norm), head(heads + kv_heads, index, v_bias)
        if head_dim <= 64:
            new = [join([k[:, :64], v[:, :64]])]
        else:
            new = [x[:, p * LANES : (p + 1) * LANES] for x in (k, v) for p in range(panels)]
        for p, value in enumerate(new):
            store_rows(kv, index * len(new) + p, rows, stride, value)


def merge_newest(new, chunk, *, position, panels, dtype):
    """Put the newest token's `panels` rows into its place `position` of a chunk of the cache, rounded to the cache."""
    row = lax.broadcasted_iota(jnp.int32, (8, LANES), 0)
    if dtype == "f32":
        here, keep, shift = row == position, jnp.int32(0), jnp.int32(0)
    else:
        here = row == lax.shift_right_logical(position, 1)
        odd = position & 1
        keep = jnp.where(odd == 1, 0xFFFF, -65536)
        shift = jnp.where(odd == 1, 0, 16)
    for panel in range(panels):
        value = jnp.broadcast_to(load_vector(new, panel), (8, LANES))
        word = pltpu.bitcast(value.astype(DTYPES[dtype]).astype(jnp.float32), jnp.int32)
        old = chunk[pl.ds(panel * 8, 8), :]
        merged = (old & keep) | lax.shift_right_logical(word, jnp.broadcast_to(shift, word.shape))
        chunk[pl.ds(panel * 8, 8), :] = jnp.where(here, merged, old)


def attend(
    q, kv, state, *, low, high, first, sequences, kv_heads, group, head_dim, tokens, soft_cap, dtype
):  # fmt: skip
    """Fold one tile of `tokens` positions of each sequence into its online softmax.

    q f32[sequence][panel][kv head][group rows]; kv[sequence] a tile of chunks; state[sequence][panels + 2] holds
    the weighted sum, then the maximum and the sum of the weights, laid out like q. Positions outside
    low[s] <= i < high[s] of the tile do not count; the first tile (`first`) starts the softmax.
    """
    panels = -(-head_dim // LANES)
    cache_panels = kv_heads if head_dim <= 64 else 2 * panels * kv_heads
    chunk_tokens = 16 if dtype == "bf16" else 8
    tile_rows = tokens // chunk_tokens * cache_panels * 8
    padded_group = -(-group // 8) * 8
    block = kv_heads * padded_group
    pairs = [(s, h) for s in range(sequences) for h in range(kv_heads)]

    def panel_of(s, index):
        rows = [
            kv[pl.ds(s * tile_rows + (chunk * cache_panels + index) * 8, 8), :]
            for chunk in range(tokens // chunk_tokens)
        ]
        return pltpu.bitcast(rows[0] if len(rows) == 1 else jnp.concatenate(rows, axis=0), DTYPES[dtype])

    def rows_of(sections, section, s, h):
        return pl.ds((s * sections + section) * block + h * padded_group, padded_group)

    def read(section, s, h):
        return pltpu.bitcast(state[rows_of(panels + 2, section, s, h), :], jnp.float32)

    def write(section, s, h, value):
        state[rows_of(panels + 2, section, s, h), :] = pltpu.bitcast(
            jnp.broadcast_to(value, (padded_group, LANES)), jnp.int32
        )

    def keys(s, h):
        return [panel_of(s, h)] if head_dim <= 64 else [panel_of(s, h * 2 * panels + p) for p in range(panels)]

    def values(s, h):
        return [panel_of(s, h)] if head_dim <= 64 else [panel_of(s, h * 2 * panels + panels + p) for p in range(panels)]

    scores = []
    for s, h in pairs:
        score = None
        for p, k in enumerate(keys(s, h)):
            left = pltpu.bitcast(q[rows_of(panels, p, s, h), :], jnp.float32).astype(DTYPES[dtype])
            part = dot_transposed(left, k, dtype)
            score = part if score is None else score + part
        scores.append(score)
    index = lax.broadcasted_iota(jnp.int32, (padded_group, tokens), 1)
    weights, scales = [], []
    for (s, h), score in zip(pairs, scores, strict=True):
        if soft_cap > 0.0:
            score = soft_cap * jnp.tanh(score * (1.0 / soft_cap))
        counts = (index >= low[s]) & (index < high[s])
        top = jnp.max(jnp.where(counts, score, MASKED), axis=1, keepdims=True)
        if not first:
            before = read(panels, s, h)[:, :1]
            top = jnp.maximum(before, top)
            scales.append(jnp.exp(before - top))
        weight = jnp.where(counts, jnp.exp(score - top), 0.0)
        amount = jnp.sum(weight, axis=1, keepdims=True)
        write(panels, s, h, top)
        write(panels + 1, s, h, amount if first else read(panels + 1, s, h)[:, :1] * scales[-1] + amount)
        weights.append(weight.astype(DTYPES[dtype]))
    for number, (s, h) in enumerate(pairs):
        for p, v in enumerate(values(s, h)):
            gained = dot(weights[number], v, dtype)
            write(p, s, h, gained if first else read(p, s, h) * scales[number] + gained)


def join_heads(state, out, *, rows, heads, kv_heads, head_dim, dtype):
    """The attention's output as a left side [rows, heads·head_dim]: weighted sums over the sum of weights."""
    panels = -(-head_dim // LANES)
    group = heads // kv_heads
    padded_group = -(-group // 8) * 8
    block = kv_heads * padded_group

    def section(number, index):
        first = number * block + index // group * padded_group + index % group
        return load_rows(state, first, rows, (panels + 2) * block)

    joined = []
    for index in range(heads):
        share = 1.0 / jnp.maximum(section(panels + 1, index), 1e-30)
        if head_dim <= 64:
            joined.append((section(0, index) * share)[:, 64 : 64 + head_dim])
        else:
            whole = join([section(p, index) * share for p in range(panels)])
            joined.append(whole[:, :head_dim])
    width = heads * head_dim
    columns = widen(join(joined), -(-width // LANES) * LANES)
    for panel in range(columns.shape[1] // LANES):
        store_operand(out, rows, panel, columns[:, panel * LANES : (panel + 1) * LANES], dtype)
