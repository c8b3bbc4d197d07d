"""Products with nvfp4 weights: e2m1 codes, an e4m3 scale a group of 16 inputs, an f32 scale a column."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.products.sections import column_scales, section_rows, section_words, spread
from schedc.backends.pallas.operations.words import DTYPES, dot


def nvfp4_dequantised(left, words, rows, depth, panels, dtype):
    """(left · (codes · scale)) · tensor: code · scale is exact in bf16."""
    codes, scales, tensor = nvfp4_sections(words, depth, panels)
    kind = DTYPES[dtype]
    return dot(left, codes.astype(kind) * spread(scales.astype(kind), 16, depth), dtype) * tensor


def nvfp4_sections(words, depth, panels):
    """float4_e2m1fn[depth, panels · 128], float8_e4m3fn[groups or more, panels · 128], f32[1, panels · 128]."""
    sections = section_rows(depth, 8), section_rows(-(-depth // 16), 4), section_rows(1, 1)
    codes, scales, tensor = (section_words(words, panels, sections, index) for index in range(3))
    return (
        pltpu.bitcast(codes, jnp.float4_e2m1fn)[:depth],
        pltpu.bitcast(scales, jnp.float8_e4m3fn),
        column_scales(tensor),
    )
