"""What is kept of a token, in the dtype of its cache."""

import jax
import jax.numpy as jnp

Pair = tuple[jax.Array, jax.Array]
"""A cache of two parts, [rows, capacity, heads, width] each; the token at position p stands at index p."""


def kept_as(x: jax.Array, dtype: jax.typing.DTypeLike) -> jax.Array:
    """Rounded to nearest; what an 8-bit format cannot hold becomes its largest number, not NaN."""
    if jnp.dtype(dtype).itemsize == 1:
        largest = float(jnp.finfo(dtype).max)
        x = jnp.clip(x, -largest, largest)
    return x.astype(dtype)


def with_tokens(state: Pair, new: Pair, positions: jax.Array) -> Pair:
    """`state` with `new`, f32[rows, tokens, heads, width] each, at `positions`, [rows, tokens]."""
    at = jnp.arange(len(positions))[:, None], positions
    first, second = (old.at[at].set(kept_as(part, old.dtype)) for old, part in zip(state, new, strict=True))
    return first, second
