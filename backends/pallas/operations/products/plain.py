"""Products with weights that are stored as they are: bf16 or f32.

Every product of this folder has the arguments of `bf16_direct`: `left` dtype[m, depth] is the left side, `words` a ref
to the panels of the weight, int32[panels · panel rows, 128], whose sections are those of its format in
schedc/weights/formats. Of `left` the first `rows` rows count, and of the result, which has 8 or more f32 rows.
"""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import DTYPES, dot, join


def bf16_direct(left, words, rows, depth, panels, dtype):
    """left · w, where w is bf16[depth, panels · 128]."""
    return dot(left, plain_weight(words, depth, panels, jnp.bfloat16).astype(DTYPES[dtype]), dtype)


def f32_direct(left, words, rows, depth, panels, dtype):
    """left · w, where w is f32[depth, panels · 128]."""
    return dot(left, plain_weight(words, depth, panels, jnp.float32).astype(DTYPES[dtype]), dtype)


def plain_weight(words, depth, panels, stored):
    """stored[depth, panels · 128], each panel padded to whole groups of 8 word rows."""
    stacked = pltpu.bitcast(words[...], stored)
    padded = stacked.shape[0] // panels
    return join([stacked[panel * padded : panel * padded + depth] for panel in range(panels)])
