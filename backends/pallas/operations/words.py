"""Reading and writing matrices that lie in `int32[rows, 128]` words.

A matrix `[rows, columns]` lies as panels of 128 columns, one panel's rows after another's.
f32 takes a row of words per row; bf16 takes a row of words per two rows (the even row in the
low 16 bits), so 16 rows of a bf16 operand are 8 rows of words.
"""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LANES = 128
DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}
CACHED = {"bf16": (jnp.bfloat16, 16, "bf16"), "f32": (jnp.float32, 8, "f32"), "fp8": (jnp.float8_e4m3fn, 32, "bf16")}
"""Format of a cache → its dtype, tokens of 8 word rows, and the dtype of dots with them."""


def load_panels(ref, rows, panels):
    """f32[rows, 128] of every panel of a matrix."""
    whole = pltpu.bitcast(ref[pl.ds(0, rows * panels), :], jnp.float32)
    return [whole[panel * rows : (panel + 1) * rows] for panel in range(panels)]


def store_panels(ref, rows, values):
    """Store a matrix from its panels f32[rows, 128]."""
    whole = stack(values)
    ref[pl.ds(0, rows * len(values)), :] = pltpu.bitcast(whole, jnp.int32)


def load_whole(ref, rows):
    """f32[rows, 128]."""
    return pltpu.bitcast(ref[pl.ds(0, rows), :], jnp.float32)


def slices(ref, first, rows):
    """slices(…)(i): `rows` rows, the i-th of those from `first` on."""
    return lambda i: ref.at[pl.ds(first + i * rows, rows)]


def load_vector(ref, panels):
    """f32[1, 128] of every panel of a vector, which takes a row of words per panel."""
    whole = pltpu.bitcast(ref[pl.ds(0, panels), :], jnp.float32)
    return [whole[panel : panel + 1] for panel in range(panels)]


def operand_words(rows, dtype):
    """Word rows of one panel of a dot's left side: bf16 always has 16 rows, f32 the rows there are."""
    return rows if dtype == "f32" else 8


def load_operand(ref, rows, columns, dtype):
    """The left side of a dot: dtype[rows, columns], columns not padded to whole panels."""
    panels = -(-columns // LANES)
    whole = pltpu.bitcast(ref[pl.ds(0, operand_words(rows, dtype) * panels), :], DTYPES[dtype])
    height = whole.shape[0] // panels
    value = join([whole[panel * height : (panel + 1) * height] for panel in range(panels)])
    return value if columns % LANES == 0 else value[:, :columns]


def store_operand(ref, rows, values, dtype):
    """Store panels f32[rows, 128] for `load_operand`; bf16 operands of 8 rows are written twice, to fill 16."""
    if dtype == "f32":
        store_panels(ref, rows, values)
        return
    whole = jnp.concatenate([part for value in values for part in (value,) * (16 // rows)], axis=0)
    ref[pl.ds(0, 8 * len(values)), :] = pltpu.bitcast(whole.astype(jnp.bfloat16), jnp.int32)


def dot(left, right, dtype):
    """f32[m, n]: exact products; f32 factors are not rounded to bf16."""
    precision = lax.Precision.HIGHEST if dtype == "f32" else lax.Precision.DEFAULT
    return lax.dot_general(
        left, right, (((1,), (0,)), ((), ())), precision=precision, preferred_element_type=jnp.float32
    )


def dot_transposed(left, right, dtype):
    """f32[m, n] = left[m, k] · right[n, k]."""
    precision = lax.Precision.HIGHEST if dtype == "f32" else lax.Precision.DEFAULT
    return lax.dot_general(
        left, right, (((1,), (1,)), ((), ())), precision=precision, preferred_element_type=jnp.float32
    )


def join(parts):
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=1)


def stack(parts):
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=0)


def split(value, rows, panels):
    """The panels f32[rows, 128] of the first rows of a matrix."""
    return [value[:rows, panel * LANES : (panel + 1) * LANES] for panel in range(panels)]


def widen(value, columns):
    """Pad f32[rows, n] with zero columns."""
    missing = columns - value.shape[1]
    return value if missing == 0 else join([value, jnp.zeros((value.shape[0], missing), value.dtype)])


def lane_index(rows):
    return lax.broadcasted_iota(jnp.int32, (rows, LANES), 1)
