"""Products with mxfp4 weights: e2m1 codes, and a power of two a group of 32 inputs of a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.block_diagonal import block_diagonal_dot
from schedc.backends.pallas.operations.products.e2m1 import RECODED, e2m1_codes, recoded_codes
from schedc.backends.pallas.operations.products.sections import section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def mxfp4_dequantised(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), exact in bf16."""
    codes, scales = mxfp4_sections(words, depth, panels)
    return mxfp4_dot(left, e2m1_codes(codes)[:depth], scales, dtype)


def mxfp4_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale."""
    codes, scales = mxfp4_sections(words, depth, panels)
    return block_diagonal_dot(left, e2m1_codes(codes)[:depth], scales, rows, 32, dtype)


def mxfp4_recoded(left, words, rows, depth, panels, dtype):
    """left · (codes · scale), exact in bf16, without the chip's own e2m1."""
    codes, scales = mxfp4_sections(words, depth, panels)
    return mxfp4_dot(left, recoded_codes(codes)[:depth], scales * RECODED, dtype)


def mxfp4_recoded_block_diagonal(left, words, rows, depth, panels, dtype):
    """Σ over groups of (left · codes) · scale, without the chip's own e2m1."""
    codes, scales = mxfp4_sections(words, depth, panels)
    return block_diagonal_dot(left, recoded_codes(codes)[:depth], scales * RECODED, rows, 32, dtype)


def mxfp4_dot(left, codes, scales, dtype):
    kind = DTYPES[dtype]
    return dot(left, codes.astype(kind) * spread(scales.astype(kind), 32, codes.shape[0]), dtype)


def mxfp4_sections(words, depth, panels):
    """The codes' words, and f32[groups or more, panels · 128]."""
    sections = section_rows(depth, 8), section_rows(-(-depth // 32), 4)
    codes, exponents = (section_words(words, panels, sections, index) for index in range(2))
    return codes, power_of_two(pltpu.bitcast(exponents, jnp.int8))


def power_of_two(exponents):
    """f32 2^(e − 127) of e8m0 in int8: the bits are f32's own exponent."""
    return pltpu.bitcast((exponents.astype(jnp.int32) << 23) & 0x7F800000, jnp.float32)
