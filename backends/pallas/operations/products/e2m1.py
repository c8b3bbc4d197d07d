"""e2m1 codes as numbers: by the chip's own type, or recoded by integer arithmetic where it has none."""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

RECODED = 64.0  # 2^6: the exponents of e4m3 are biased by 7, those of e2m1 by 1


def e2m1_codes(words):
    """float4_e2m1fn[8 n, columns] of int32[n, columns]."""
    return pltpu.bitcast(words, jnp.float4_e2m1fn)


def recoded_codes(words):
    """float8_e4m3fn[8 n, columns], 1 / 64 of the numbers: sign, exponent and mantissa moved to where e4m3 has them."""
    codes = pltpu.bitcast(pltpu.bitcast(words, jnp.int4).astype(jnp.int8), jnp.int32)
    moved = ((codes & 0x08080808) << 4) | ((codes & 0x07070707) << 2)
    return pltpu.bitcast(moved, jnp.float8_e4m3fn)
