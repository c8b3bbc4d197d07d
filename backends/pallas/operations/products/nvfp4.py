"""Products with nvfp4 weights: e2m1 codes, an e4m3 scale a group of 16 inputs, an f32 scale a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.block_diagonal import block_diagonal_dot
from schedc.backends.pallas.operations.products.e2m1 import RECODED, e2m1_codes, recoded_codes
from schedc.backends.pallas.operations.products.sections import column_scales, section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def nvfp4_dequantised(left, words, rows, depth, panels, dtype):
    """(left · (codes · scale)) · tensor: code · scale is exact in bf16."""
    codes, scales, tensor = nvfp4_sections(words, depth, panels)
    return nvfp4_dot(left, e2m1_codes(codes)[:depth], scales, dtype) * tensor


def nvfp4_block_diagonal(left, words, rows, depth, panels, dtype):
    """(Σ over groups of (left · codes) · scale) · tensor."""
    codes, scales, tensor = nvfp4_sections(words, depth, panels)
    return block_diagonal_dot(left, e2m1_codes(codes)[:depth], scales.astype(jnp.float32), rows, 16, dtype) * tensor


def nvfp4_recoded(left, words, rows, depth, panels, dtype):
    """(left · (codes · scale)) · tensor, without the chip's own e2m1."""
    codes, scales, tensor = nvfp4_sections(words, depth, panels)
    return nvfp4_dot(left, recoded_codes(codes)[:depth], scales, dtype) * (tensor * RECODED)


def nvfp4_recoded_block_diagonal(left, words, rows, depth, panels, dtype):
    """(Σ over groups of (left · codes) · scale) · tensor, without the chip's own e2m1."""
    codes, scales, tensor = nvfp4_sections(words, depth, panels)
    sums = block_diagonal_dot(left, recoded_codes(codes)[:depth], scales.astype(jnp.float32), rows, 16, dtype)
    return sums * (tensor * RECODED)


def nvfp4_dot(left, codes, scales, dtype):
    kind = DTYPES[dtype]
    return dot(left, codes.astype(kind) * spread(scales.astype(kind), 16, codes.shape[0]), dtype)


def nvfp4_sections(words, depth, panels):
    """The codes' words, float8_e4m3fn[groups or more, panels · 128], f32[1, panels · 128]."""
    sections = section_rows(depth, 8), section_rows(-(-depth // 16), 4), section_rows(1, 1)
    codes, scales, tensor = (section_words(words, panels, sections, index) for index in range(3))
    return codes, pltpu.bitcast(scales, jnp.float8_e4m3fn), column_scales(tensor)
