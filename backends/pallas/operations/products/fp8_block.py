"""Products with fp8 (e4m3) weights: codes, and an f32 scale a group of 128 or 64 inputs of a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.block_diagonal import block_diagonal_dot
from schedc.backends.pallas.operations.products.sections import mixed_dot, section_rows, section_words, spread
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


def fp8_block128_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    codes, scales = fp8_block_sections(words, depth, panels, 128)
    return block_diagonal_dot(left, codes, scales, rows, 128, dtype)


def fp8_block64_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    codes, scales = fp8_block_sections(words, depth, panels, 64)
    return block_diagonal_dot(left, codes, scales, rows, 64, dtype)


def fp8_block128_scaled_after(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale, a dot for each group."""
    return fp8_block_scaled_after(left, words, depth, panels, 128)


def fp8_block64_scaled_after(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale, a dot for each group."""
    return fp8_block_scaled_after(left, words, depth, panels, 64)


def fp8_block_scaled_after(left, words, depth, panels, group):
    codes, scales = fp8_block_sections(words, depth, panels, group)
    total = 0.0
    for place, first in enumerate(range(0, depth, group)):
        part = mixed_dot(left[:, first : first + group], codes[first : first + group])
        total = total + part * scales[place : place + 1]
    return total


def fp8_block_sections(words, depth, panels, group):
    """float8_e4m3fn[depth, panels · 128] and f32[groups or more, panels · 128]."""
    sections = section_rows(depth, 4), section_rows(-(-depth // group), 1)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.float8_e4m3fn)[:depth]
    return codes, pltpu.bitcast(section_words(words, panels, sections, 1), jnp.float32)
