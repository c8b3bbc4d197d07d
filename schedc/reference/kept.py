"""What is kept of a token, in the dtype of its cache."""

import jax
import jax.numpy as jnp


def kept_as(x: jax.Array, dtype: jax.typing.DTypeLike) -> jax.Array:
    """Rounded to nearest; what an 8-bit format cannot hold becomes its largest number, not NaN."""
    if jnp.dtype(dtype).itemsize == 1:
        largest = float(jnp.finfo(dtype).max)
        x = jnp.clip(x, -largest, largest)
    return x.astype(dtype)
