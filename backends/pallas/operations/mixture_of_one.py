"""The operations of block attention residuals where one row counts: a vector lies as f32[panels, 128].

An eighth of the registers that rows of panels take. Of the stream x, whose rows are padded, it is the first row.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import load_rows
from schedc.backends.pallas.operations.mixture import ABSENT
from schedc.backends.pallas.operations.words import LANES, load_whole, operand_words, store_panels


def append_sum_of_one(x, block, scale, *, rows, columns, eps):
    """`append_sum` where only the first of the padded rows counts: block f32[columns], scale f32[8, 128]."""
    panels = -(-columns // LANES)
    value = load_rows(x, 0, panels, rows)
    block[...] = pltpu.bitcast(value, jnp.int32)
    inverse = lax.rsqrt(total_of_all(value * value) * (1.0 / columns) + eps)
    store_panels(scale, 8, [jnp.broadcast_to(inverse, (8, LANES))])
    store_panels(x, rows, [jnp.zeros((rows, LANES), jnp.float32)] * panels)


def mixed_norm_of_one(
    x, blocks, scales, gain, query, scratch, out, weight=None, bias=None, *,
    count, rows, columns, sources, mixture_eps, dtype, eps=0.0, kind=None,
):  # fmt: skip
    """`mixed_norm` where only the first of the padded rows counts: a vector lies as panels, not as rows of panels.

    blocks f32[sources, columns], each from a multiple of 8 rows on, scales f32[sources, 8, 128]; scratch: the panels,
    then twice a row for each of the sources and two more, all three rounded up to 8.
    """
    panels = -(-columns // LANES)
    step, height = -(-panels // 8) * 8, -(-(sources + 2) // 8) * 8
    by_source = scratch.at[pl.ds(step, height)]
    shares = scratch.at[pl.ds(step + height, height)]
    factors = load_whole(gain, panels) * load_whole(query, panels)
    running = load_rows(x, 0, panels, rows)
    found = [load_whole(blocks.at[pl.ds(j * step, panels)], panels) for j in range(sources)]
    for j, source in enumerate(found):
        scale = load_whole(scales.at[pl.ds(8 * j, 1)], 1)
        store_row(by_source, j, jnp.sum(source * factors, axis=0, keepdims=True) * scale)
    store_row(by_source, sources, jnp.sum(running * factors, axis=0, keepdims=True))
    store_row(by_source, sources + 1, jnp.sum(running * running, axis=0, keepdims=True))
    sums = jnp.sum(load_whole(by_source, height), axis=1, keepdims=True)
    inverse = lax.rsqrt(sums[sources + 1 : sources + 2] * (1.0 / columns) + mixture_eps)
    place = lax.broadcasted_iota(jnp.int32, (height, 1), 0)
    scores = jnp.where(place < count, sums, jnp.where(place == sources, sums * inverse, ABSENT))
    share = jnp.exp(scores - jnp.max(scores, axis=0, keepdims=True))
    share = share * (1.0 / jnp.sum(share, axis=0, keepdims=True))
    shares[...] = pltpu.bitcast(jnp.broadcast_to(share, (height, LANES)), jnp.int32)
    value = running * load_whole(shares.at[pl.ds(sources, 1)], 1)
    for j, source in enumerate(found):
        value = value + source * load_whole(shares.at[pl.ds(j, 1)], 1)
    if kind is not None:
        factor, shift = (None if vector is None else load_whole(vector, panels) for vector in (weight, bias))
        value = normalised_of_one(value, factor, shift, columns=columns, eps=eps, kind=kind)
    store_operand_of_one(scratch.at[pl.ds(0, panels)], out, rows, value, dtype)


def store_row(ref, row, value):
    ref[pl.ds(row, 1), :] = pltpu.bitcast(value, jnp.int32)


def total_of_all(value):
    """f32[1, 1]: the sum of f32[panels, 128]."""
    return jnp.sum(jnp.sum(value, axis=0, keepdims=True), axis=1, keepdims=True)


def normalised_of_one(value, weight, bias, *, columns, eps, kind):
    """`normalised` of one vector f32[panels, 128]."""
    if kind == "rms_of_scaled":
        value, weight = value * weight, None
    if kind == "layer":
        column = lax.broadcasted_iota(jnp.int32, value.shape, 0) * LANES + lax.broadcasted_iota(
            jnp.int32, value.shape, 1
        )
        value = jnp.where(column < columns, value - total_of_all(value) * (1.0 / columns), 0.0)
    value = value * lax.rsqrt(total_of_all(value * value) * (1.0 / columns) + eps)
    value = value if weight is None else value * weight
    return value if bias is None else value + bias


def store_operand_of_one(scratch, out, rows, value, dtype):
    """`store_operand` of one vector f32[panels, 128], which all rows get."""
    if dtype == "bf16":
        high = pltpu.bitcast(value.astype(jnp.bfloat16).astype(jnp.float32), jnp.int32)
        words = high | lax.shift_right_logical(high, jnp.full(high.shape, 16, jnp.int32))
    else:
        words = pltpu.bitcast(value, jnp.int32)
    scratch[...] = words
    height, panels = operand_words(rows, dtype), value.shape[0]
    for panel in range(panels):
        out[pl.ds(panel * height, height), :] = jnp.broadcast_to(scratch[pl.ds(panel, 1), :], (height, LANES))
