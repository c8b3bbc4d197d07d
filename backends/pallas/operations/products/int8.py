"""Products with int8 weights: codes, and an f32 scale a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.sections import column_scales, section_rows, section_words
from schedc.backends.pallas.operations.words import DTYPES, dot


def int8_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    codes, scale = int8_sections(words, depth, panels)
    return dot(left, (codes.astype(jnp.float32) * scale).astype(DTYPES[dtype]), dtype)


def int8_scaled_after(left, words, rows, depth, panels, dtype):
    """(left · codes) · scale; the codes are exact in bf16."""
    codes, scale = int8_sections(words, depth, panels)
    return dot(left, codes.astype(DTYPES[dtype]), dtype) * scale


def int8_sections(words, depth, panels):
    """int8[depth, panels · 128] and f32[1, panels · 128]."""
    sections = section_rows(depth, 4), section_rows(1, 1)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.int8)[:depth]
    return codes, column_scales(section_words(words, panels, sections, 1))
