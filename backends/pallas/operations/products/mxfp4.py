"""Products with mxfp4 weights: e2m1 codes, and a power of two a group of 32 inputs of a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.sections import section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def mxfp4_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), exact in bf16."""
    codes, scales = mxfp4_sections(words, depth, panels)
    kind = DTYPES[dtype]
    return dot(left, codes.astype(kind) * spread(scales.astype(kind), 32, depth), dtype)


def mxfp4_sections(words, depth, panels):
    """float4_e2m1fn[depth, panels · 128] and f32[groups or more, panels · 128]."""
    sections = section_rows(depth, 8), section_rows(-(-depth // 32), 4)
    codes = pltpu.bitcast(section_words(words, panels, sections, 0), jnp.float4_e2m1fn)[:depth]
    return codes, power_of_two(pltpu.bitcast(section_words(words, panels, sections, 1), jnp.int8))


def power_of_two(exponents):
    """f32 2^(e − 127) of e8m0 in int8: the bits are f32's own exponent."""
    return pltpu.bitcast((exponents.astype(jnp.int32) << 23) & 0x7F800000, jnp.float32)
