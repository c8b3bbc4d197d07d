"""Products with fp8 (e4m3) weights: codes, and an f32 scale a group of 128 or 64 inputs of a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.sections import section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def fp8_block128_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    return fp8_block_dequantised(left, words, depth, panels, dtype, 128)


def fp8_block64_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    return fp8_block_dequantised(left, words, depth, panels, dtype, 64)


def fp8_block_dequantised(left, words, depth, panels, dtype, group):
    codes, scales = fp8_block_sections(words, depth, panels, group)
    weight = codes.astype(jnp.float32) * spread(scales, group, depth)
    return dot(left, weight.astype(DTYPES[dtype]), dtype)


def fp8_block_sections(words, depth, panels, group):
    """float8_e4m3fn[depth, panels · 128] and f32[groups or more, panels · 128]."""
    sections = section_rows(depth, 4), section_rows(-(-depth // group), 1)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.float8_e4m3fn)[:depth]
    return codes, pltpu.bitcast(section_words(words, panels, sections, 1), jnp.float32)
