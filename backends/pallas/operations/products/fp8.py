"""Products with fp8 (e4m3) weights: codes, and an f32 scale a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.sections import column_scales, mixed_dot, section_rows, section_words
from schedc.backends.pallas.operations.words import DTYPES, dot


def fp8_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    codes, scale = fp8_sections(words, depth, panels)
    return dot(left, (codes.astype(jnp.float32) * scale).astype(DTYPES[dtype]), dtype)


def fp8_scaled_after(left, words, rows, depth, panels, dtype):
    """(left · codes) · scale, with the codes as they are; left is bf16."""
    codes, scale = fp8_sections(words, depth, panels)
    return mixed_dot(left, codes) * scale


def fp8_sections(words, depth, panels):
    """float8_e4m3fn[depth, panels · 128] and f32[1, panels · 128]."""
    sections = section_rows(depth, 4), section_rows(1, 1)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.float8_e4m3fn)[:depth]
    return codes, column_scales(section_words(words, panels, sections, 1))
