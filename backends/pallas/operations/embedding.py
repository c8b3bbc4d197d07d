"""The token's row of the embedding table."""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import store_panels


def zero(out):
    """Clear a region, so that what is never written there is finite."""
    out[...] = jnp.zeros(out.shape, out.dtype)


def move(x, out):
    """out = x."""
    out[...] = x[...]


def embed(words, out, *, rows, panels, dtype, multiplier):
    """Unpack table rows into f32[rows, panels * 128].

    `words` holds `ceil(panels / 2)` word rows a token (bf16: panel i low, panel i + half high)
    or `panels` word rows a token (f32).
    """
    half = panels if dtype == "f32" else -(-panels // 2)
    table = [words[pl.ds(i, rows, stride=half), :] if half > 1 else words[...] for i in range(half)]
    if dtype == "f32":
        values = [pltpu.bitcast(word, jnp.float32) for word in table]
    else:
        values = [pltpu.bitcast(word << 16, jnp.float32) for word in table]
        values += [pltpu.bitcast(word & -65536, jnp.float32) for word in table]
    store_panels(out, rows, [value * multiplier for value in values[:panels]])
