"""The way out of a latent space whose sum no device has whole: each normalises what all devices have summed later.

x · rsqrt(mean(x²) + eps) · w · W is (x · w · W) · rsqrt(Σ x² / columns + eps): a sum over the parts of x, times a
factor that is known when the squares of all parts have been added. A part has `each` panels of `height` rows of which
`used` are there, as `parts.py` lays them.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.collective import from_words, pieces, to_words
from schedc.backends.pallas.operations.norm import total
from schedc.backends.pallas.operations.words import LANES, lane_index, load_vector, stack, store_operand


def by_lane(rows):
    """Whether the lane has the number of the row, bool[rows, 128]."""
    return lane_index(rows) == lax.broadcasted_iota(jnp.int32, (rows, LANES), 0)


def panels_of_part(x, *, each, height, used):
    """f32[height, 128] of every panel of a part; rows that are not used are zero."""
    if used == height:
        return [pltpu.bitcast(x[pl.ds(panel * height, height), :], jnp.float32) for panel in range(each)]
    whole = pltpu.bitcast(x[...], jnp.float32)
    rest = [jnp.zeros((height - used, LANES), jnp.float32)]
    at = [[row * each + panel for row in range(used)] for panel in range(each)]
    return [stack([whole[place : place + 1] for place in places] + rest) for places in at]


def operand_of_part(x, out, squares, weight=None, *, each, height, used, kind, dtype):
    """The left side of a dot, times the norm's weight, and row r's sum of squares in lane r of the first row."""
    values = panels_of_part(x, each=each, height=height, used=used)
    gain = None if weight is None else load_vector(weight, each)
    scaled = values if gain is None else [value * factor for value, factor in zip(values, gain, strict=True)]
    summed = total([value * value for value in (scaled if kind == "rms_of_scaled" else values)])
    sums = jnp.sum(jnp.where(by_lane(height), summed, 0.0), axis=0, keepdims=True)
    squares[...] = pltpu.bitcast(stack([sums, jnp.zeros((7, LANES), jnp.float32)]), jnp.int32)
    store_operand(out, height, scaled, dtype)


def factors(scale, first, count, *, each, used):
    """f32[count, 1] for the rows of a part from `first` on, of one f32[height, 1] for each row of a panel."""
    height = scale.shape[0]
    if used == 1:
        return scale[:1]
    if used == height:
        return stack([scale] * (count // height))
    return stack([scale[row // each : row // each + 1] for row in range(first, first + count)])


def sum_scaled(blocks, own, out, plain=None, *, count, wire, columns, eps, each, height, used):
    """out = Σ parts · rsqrt(Σ squares / columns + eps) + plain: the own part and `count` others, words of the wire.

    The squares are a row of f32 behind each part; `plain` is f32 in the order of the part.
    """
    pitch, per_word = own.shape[0], 1 if wire == "f32" else 2
    words = -(-each * used // per_word)
    squares = pltpu.bitcast(own[pl.ds(words, 1), :], jnp.float32)
    for block in range(count):
        squares = squares + pltpu.bitcast(blocks[pl.ds(block * pitch + words, 1), :], jnp.float32)
    here = jnp.broadcast_to(squares, (height, LANES))
    summed = jnp.sum(jnp.where(by_lane(height), here, 0.0), axis=1, keepdims=True)
    scale = lax.rsqrt(summed * (1.0 / columns) + eps)
    for first, size in pieces(-(-words // 8) * 8):
        value = from_words(own[pl.ds(first, size), :], wire)
        for block in range(count):
            value = value + from_words(blocks[pl.ds(block * pitch + first, size), :], wire)
        start = first * per_word
        there = min(size * per_word, each * used - start)
        value = value[:there] * factors(scale, start, there, each=each, used=used)
        if plain is not None:
            value = value + pltpu.bitcast(plain[pl.ds(start, there), :], jnp.float32)
        if there < size * per_word:
            value = stack([value, jnp.zeros((size * per_word - there, LANES), jnp.float32)])
        out[pl.ds(first, size), :] = to_words(value, wire)
