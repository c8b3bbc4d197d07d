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

from schedc.backends.pallas.operations.joint_norm import by_head, normed_jointly
from schedc.backends.pallas.operations.norm import norm_vectors, normalised
from schedc.backends.pallas.operations.words import (
    CACHED,
    DTYPES,
    LANES,
    dot,
    dot_transposed,
    join,
    lane_index,
    load_panels,
    load_vector,
    split,
    stack,
    store_operand,
    store_panels,
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


def warmer(position, rows, lanes, temperature, interval):
    """f32[rows, lanes]: 1 + temperature · ln(1 + floor((p + 1) / interval)) of each row's position p."""
    row = lax.broadcasted_iota(jnp.int32, (rows, lanes), 0)
    intervals = jnp.zeros((rows, lanes), jnp.int32)
    for sequence, at in enumerate(position):
        intervals = jnp.where(row == sequence, lax.div(at + 1, jnp.int32(interval)), intervals)
    return 1.0 + temperature * jnp.log(1.0 + intervals.astype(jnp.float32))


def split_heads(
    y, q, kv, rope=None, q_bias=None, k_bias=None, v_bias=None, q_norm=None, k_norm=None,
    q_norm_bias=None, k_norm_bias=None, squares=None, position=(), *, rows, heads, kv_heads, head_dim, scale, rotary,
    norm_kind="none", norm_eps=0.0, norm_after_rope=False, temperature=0.0, interval=1, all_heads=0, all_kv_heads=0,
    heads_first=False,
):  # fmt: skip
    """From projections to heads: bias, norm, rotation, scale.

    The norm is that of each head, or with the `squares` of `sum_squares` that of all heads of a row jointly: of
    `all_heads` and `all_kv_heads`, which may be on several devices.

    y f32[rows, (heads + 2·kv_heads)·head_dim]; q f32[row][panel][kv head][group] rows of 128 lanes, each group padded
    to a multiple of 8, or with `heads_first` [panel][head][row]; kv f32[row][kv head][panel]: one row of the cache a
    panel, padded to 8 rows. `rope` holds [row][panel][cos, sin].
    """
    panels = -(-head_dim // LANES)
    lanes = panels * LANES
    group = heads // kv_heads
    padded_group = -(-group // 8) * 8
    width = (heads + 2 * kv_heads) * head_dim
    projected = join(load_panels(y, rows, -(-width // LANES)))
    if rotary:
        cos, sin = (join([load_rows(rope, 2 * p + side, rows, 2 * panels) for p in range(panels)]) for side in (0, 1))

    def heads_of(first, count, bias):
        """f32[count · rows, lanes]: all heads one below the other, so that every step is taken for all at once."""
        columns = [projected[:, (first + i) * head_dim : (first + i + 1) * head_dim] for i in range(count)]
        shift = [0.0] * count if bias is None else by_head(load_vector(bias, count * panels), panels)
        return stack([widen(x, lanes) + b for x, b in zip(columns, shift, strict=True)])

    def normed(x, weight, shift, lane, everywhere):
        if squares is not None:
            columns = everywhere * head_dim
            return normed_jointly(x, squares, weight, rows=rows, lane=lane, columns=columns, eps=norm_eps)
        values, (gain, shift) = split(x, x.shape[0], panels), norm_vectors(weight, shift, panels)
        return join(normalised(values, gain, shift, columns=head_dim, eps=norm_eps, kind=norm_kind))

    def finished(x, *of_norm):
        count = x.shape[0] // rows
        if norm_kind != "none" and not norm_after_rope:
            x = normed(x, *of_norm)
        if rotary:
            x = rotate(x, stack([cos] * count), stack([sin] * count), rotary // 2)
        return normed(x, *of_norm) if norm_kind != "none" and norm_after_rope else x

    block = kv_heads * padded_group
    queries = finished(heads_of(0, heads, q_bias), q_norm, q_norm_bias, 0, all_heads) * scale
    if temperature:
        queries = queries * stack([warmer(position, rows, lanes, temperature, interval)] * heads)
    keys = finished(heads_of(heads, kv_heads, k_bias), k_norm, k_norm_bias, 1, all_kv_heads)
    values = heads_of(heads + kv_heads, kv_heads, v_bias)
    for index in range(heads):
        slot = index // group * padded_group + index % group
        for p, value in enumerate(split(queries[index * rows : (index + 1) * rows], rows, panels)):
            if heads_first:
                store_panels(q.at[pl.ds((p * heads + index) * rows, rows), :], rows, [value])
            else:
                store_rows(q, p * block + slot, rows, panels * block, value)
    stride = -(-(kv_heads if head_dim <= 64 else 2 * panels * kv_heads) // 8) * 8
    for index in range(kv_heads):
        k, v = (side[index * rows : (index + 1) * rows] for side in (keys, values))
        new = [join([k[:, :64], v[:, :64]])] if head_dim <= 64 else split(k, rows, panels) + split(v, rows, panels)
        for p, value in enumerate(new):
            store_rows(kv, index * len(new) + p, rows, stride, value)


def merge_newest(new, chunk, *, position, panels, dtype):
    """Put the newest token's `panels` rows into its place `position` of a chunk of the cache, rounded to the cache."""
    row = lax.broadcasted_iota(jnp.int32, (8, LANES), 0)
    if dtype == "fp8":
        merge_fp8(new, chunk, position, panels)
        return
    if dtype == "f32":
        here, keep, shift = row == position, jnp.int32(0), jnp.int32(0)
    else:
        here = row == lax.shift_right_logical(position, 1)
        odd = position & 1
        keep = jnp.where(odd == 1, 0xFFFF, -65536)
        shift = jnp.where(odd == 1, 0, 16)
    old, merged = chunk[...], []
    for panel, value in enumerate(load_vector(new, panels)):
        rounded = jnp.broadcast_to(value, (8, LANES)).astype(DTYPES[dtype]).astype(jnp.float32)
        word = lax.shift_right_logical(pltpu.bitcast(rounded, jnp.int32), jnp.broadcast_to(shift, (8, LANES)))
        before = old[panel * 8 : (panel + 1) * 8]
        merged.append(jnp.where(here, (before & keep) | word, before))
    chunk[...] = jnp.concatenate(merged, axis=0)


def merge_fp8(new, chunk, position, panels):
    """The same where four tokens share a word, in bytes: what e4m3 cannot hold becomes its largest number."""
    here = lax.broadcasted_iota(jnp.int32, (8, LANES), 0) == lax.shift_right_logical(position, 2)
    byte = lax.shift_left(jnp.int32(255), (position & 3) * 8)
    old, merged = chunk[...], []
    for panel, value in enumerate(load_vector(new, panels)):
        rounded = jnp.broadcast_to(jnp.clip(value, -448.0, 448.0), (32, LANES)).astype(jnp.float8_e4m3fn)
        before = old[panel * 8 : (panel + 1) * 8]
        merged.append(jnp.where(here, (before & ~byte) | (pltpu.bitcast(rounded, jnp.int32) & byte), before))
    chunk[...] = jnp.concatenate(merged, axis=0)


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
    stored, chunk_tokens, dtype = CACHED[dtype]
    tile_rows = tokens // chunk_tokens * cache_panels * 8
    padded_group = -(-group // 8) * 8
    block = kv_heads * padded_group
    pairs = [(s, h) for s in range(sequences) for h in range(kv_heads)]

    def panel_of(tile, index):
        rows = [
            tile[(chunk * cache_panels + index) * 8 : (chunk * cache_panels + index + 1) * 8]
            for chunk in range(tokens // chunk_tokens)
        ]
        return pltpu.bitcast(stack(rows), stored).astype(DTYPES[dtype])

    def key_panel(h, p):
        return h if head_dim <= 64 else h * 2 * panels + p

    def value_panel(h, p):
        return h if head_dim <= 64 else h * 2 * panels + panels + p

    def tiles():
        return [kv[pl.ds(s * tile_rows, tile_rows), :] for s in range(sequences)]

    def rows_of(section, s, h):
        """Where the rows of a pair lie in a section of `state`."""
        first = (s * (panels + 2) + section) * block + h * padded_group
        return slice(first, first + padded_group)

    before = None if first else pltpu.bitcast(state[...], jnp.float32)
    queries = pltpu.bitcast(q[...], jnp.float32).astype(DTYPES[dtype])
    scores, loaded = [], tiles()
    for s, h in pairs:
        score = None
        for p in range(panels):
            left = (s * panels + p) * block + h * padded_group
            part = dot_transposed(queries[left : left + padded_group], panel_of(loaded[s], key_panel(h, p)), dtype)
            score = part if score is None else score + part
        scores.append(score)
    index = lax.broadcasted_iota(jnp.int32, (padded_group, tokens), 1)
    weights, scales, tops, amounts = [], [], [], []
    for (s, h), score in zip(pairs, scores, strict=True):
        if soft_cap > 0.0:
            score = soft_cap * jnp.tanh(score * (1.0 / soft_cap))
        counts = (index >= low[s]) & (index < high[s])
        top = jnp.max(jnp.where(counts, score, MASKED), axis=1, keepdims=True)
        if not first:
            earlier = before[rows_of(panels, s, h)][:, :1]
            top = jnp.maximum(earlier, top)
            scales.append(jnp.exp(earlier - top))
        weight = jnp.where(counts, jnp.exp(score - top), 0.0)
        amount = jnp.sum(weight, axis=1, keepdims=True)
        tops.append(top)
        amounts.append(amount if first else before[rows_of(panels + 1, s, h)][:, :1] * scales[-1] + amount)
        weights.append(weight.astype(DTYPES[dtype]))
    loaded, sums = tiles(), {}
    for number, (s, h) in enumerate(pairs):
        for p in range(panels):
            gained = dot(weights[number], panel_of(loaded[s], value_panel(h, p)), dtype)
            sums[s, h, p] = gained if first else before[rows_of(p, s, h)] * scales[number] + gained
    after = []
    for s in range(sequences):
        numbers = [s * kv_heads + h for h in range(kv_heads)]
        after += [sums[s, h, p] for p in range(panels) for h in range(kv_heads)]
        after += [jnp.broadcast_to(part[n], (padded_group, LANES)) for part in (tops, amounts) for n in numbers]
    state[...] = pltpu.bitcast(jnp.concatenate(after, axis=0), jnp.int32)


def join_heads(
    state, out, gate=None, sinks=None, output_norm=None, output_norm_bias=None, *, rows, heads, kv_heads, head_dim,
    dtype, norm_kind="none", norm_eps=0.0, heads_first=False,
):  # fmt: skip
    """The attention's output as a left side [rows, heads·head_dim]: weighted sums over the sum of weights.

    state f32[row][panels + 2][kv head][group], each group padded to a multiple of 8, or with `heads_first`
    [panels + 2][head][row]. `sinks`: a logit a head whose weight joins the sum; then a norm over each head; `gate`
    f32[rows, heads·head_dim]: times its sigmoid.
    """
    panels = -(-head_dim // LANES)
    group = heads // kv_heads
    padded_group = -(-group // 8) * 8
    block = kv_heads * padded_group

    def section(number, index):
        if heads_first:
            return load_panels(state.at[pl.ds((number * heads + index) * rows, rows), :], rows, 1)[0]
        first = number * block + index // group * padded_group + index % group
        return load_rows(state, first, rows, (panels + 2) * block)

    sink = None if sinks is None else load_vector(sinks, -(-heads // LANES))
    factor_and_shift = norm_vectors(output_norm, output_norm_bias, panels)
    of_head = [None if vector is None else [join(vector)[:, :head_dim]] for vector in factor_and_shift]
    joined = []
    for index in range(heads):
        amount = section(panels + 1, index)
        if sink is not None:
            logit = sink[index // LANES][:, index % LANES : index % LANES + 1]
            amount = amount + jnp.exp(logit - section(panels, index))
        share = 1.0 / jnp.maximum(amount, 1e-30)
        if head_dim <= 64:
            value = (section(0, index) * share)[:, 64 : 64 + head_dim]
        else:
            value = join([section(p, index) * share for p in range(panels)])[:, :head_dim]
        if norm_kind != "none":
            (value,) = normalised([value], *of_head, columns=head_dim, eps=norm_eps, kind=norm_kind)
        joined.append(value)
    width = -(-heads * head_dim // LANES)
    values = split(widen(join(joined), width * LANES), rows, width)
    if gate is not None:
        values = [value / (1.0 + jnp.exp(-z)) for value, z in zip(values, load_panels(gate, rows, width), strict=True)]
    store_operand(out, rows, values, dtype)
