"""Products with int4 weights: codes, and a bf16 scale a group of 32, 64 or 128 inputs of a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.block_diagonal import block_diagonal_dot
from schedc.backends.pallas.operations.products.sections import section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def int4_g32_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    return int4_dequantised(left, words, depth, panels, dtype, 32)


def int4_g64_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    return int4_dequantised(left, words, depth, panels, dtype, 64)


def int4_g128_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), each weight rounded to dtype."""
    return int4_dequantised(left, words, depth, panels, dtype, 128)


def int4_dequantised(left, words, depth, panels, dtype, group):
    """Code and scale are exact in bf16: their product is rounded once, as that of f32 would be."""
    codes, scales = int4_sections(words, depth, panels, group)
    kind = DTYPES[dtype]
    return dot(left, codes.astype(kind) * spread(scales.astype(kind), group, depth), dtype)


def int4_g32_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    return int4_block_diagonal(left, words, rows, depth, panels, dtype, 32)


def int4_g64_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    return int4_block_diagonal(left, words, rows, depth, panels, dtype, 64)


def int4_g128_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    return int4_block_diagonal(left, words, rows, depth, panels, dtype, 128)


def int4_block_diagonal(left, words, rows, depth, panels, dtype, group):
    codes, scales = int4_sections(words, depth, panels, group)
    return block_diagonal_dot(left, codes, scales.astype(jnp.float32), rows, group, dtype)


def int4_sections(words, depth, panels, group):
    """int4[depth, panels · 128] and bf16[groups or more, panels · 128]."""
    sections = section_rows(depth, 8), section_rows(-(-depth // group), 2)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.int4)[:depth]
    return codes, pltpu.bitcast(section_words(words, panels, sections, 1), jnp.bfloat16)
