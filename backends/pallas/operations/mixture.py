"""Block attention residuals: a half reads a mixture of the sums of earlier blocks of layers and of the running sum.

The sources are `count` stored sums v_j and the running sum x. With s_j = Σ_d norm_d · query_d · v_{j,d} / rms(v_j) the
mixture is Σ_j softmax(s)_j · v_j, in f32. 1 / rms(v_j) is kept from when v_j was stored. All `sources` that there may
be are gone through, so that the work is one straight line; what is not there yet is zero and gets no share.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.norm import norm_vectors, normalised, total
from schedc.backends.pallas.operations.words import LANES, load_panels, load_whole, slices, store_operand, store_panels

ABSENT = -1e30
"""The score of a source that there is not yet."""


def append_sum(x, block, scale, *, rows, columns, eps):
    """Store the running sum f32[rows, columns], and its 1 / rms f32[rows, 128]; a new sum begins at zero."""
    values = load_panels(x, rows, -(-columns // LANES))
    store_panels(block, rows, values)
    inverse = lax.rsqrt(total([value * value for value in values]) * (1.0 / columns) + eps)
    store_panels(scale, rows, [jnp.broadcast_to(inverse, (rows, LANES))])
    store_panels(x, rows, [jnp.zeros((rows, LANES), jnp.float32)] * len(values))


def mixed_norm(
    x, blocks, scales, gain, query, scratch, out, weight=None, bias=None, *,
    count, rows, columns, sources, mixture_eps, dtype, eps=0.0, kind=None,
):  # fmt: skip
    """out: the left side of a dot, the normalised mixture (without `kind` not normalised).

    blocks f32[sources, rows, columns], scales f32[sources, rows, 128]; gain and query: f32[columns], norm and query;
    scratch: f32[rows, columns], before it `factor_rows` rows and those of the shares, f32[sources + 1, rows, 128].
    """
    panels = -(-columns // LANES)
    factor_rows = -(-panels // 8) * 8
    factors = scratch.at[pl.ds(0, panels)]
    factors[...] = pltpu.bitcast(load_whole(gain, panels) * load_whole(query, panels), jnp.int32)
    found = [*(slices(blocks, j * panels * rows, rows) for j in range(sources)), slices(x, 0, rows)]
    weighed = [jnp.zeros((rows, LANES), jnp.float32)] * (sources + 2)
    for panel in range(panels):
        factor = load_whole(factors.at[pl.ds(panel, 1)], 1)
        for j, source in enumerate(found):
            weighed[j] += load_whole(source(panel), rows) * factor
        running = load_whole(found[-1](panel), rows)
        weighed[-1] += running * running
    *sums, own, square = [jnp.sum(value, axis=1, keepdims=True) for value in weighed]
    scores = [own * lax.rsqrt(square * (1.0 / columns) + mixture_eps)]
    for j, score in enumerate(sums):
        scale = load_whole(scales.at[pl.ds(j * rows, rows)], rows)[:, 0:1]
        scores.append(jnp.where(j < count, score * scale, ABSENT))

    highest = scores[0]
    for score in scores[1:]:
        highest = jnp.maximum(highest, score)
    parts = [jnp.exp(score - highest) for score in scores]
    whole = 1.0 / sum_of(parts)
    shares = slices(scratch, factor_rows, rows)
    for j, part in zip((sources, *range(sources)), parts, strict=True):
        store_panels(shares(j), rows, [jnp.broadcast_to(part * whole, (rows, LANES))])

    parts = [load_whole(shares(j), rows) for j in range(sources + 1)]
    mixed = scratch.at[pl.ds(factor_rows + (sources + 1) * rows, panels * rows)]
    for panel in range(panels):
        values = [part * load_whole(source(panel), rows) for part, source in zip(parts, found, strict=True)]
        store_panels(mixed.at[pl.ds(panel * rows, rows)], rows, [sum_of(values)])
    result = load_panels(mixed, rows, panels)
    if kind is not None:
        factor, shift = norm_vectors(weight, bias, panels)
        result = normalised(result, factor, shift, columns=columns, eps=eps, kind=kind)
    store_operand(out, rows, result, dtype)


def sum_of(values):
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result
