"""Rotary position embedding by its definition: pair i at position p turns by p · f[i]."""

import jax
import jax.numpy as jnp
import numpy as np

from schedc.spec.rope import Rope, inverse_frequencies


def rotate(rope: Rope, rotary_dim: int, capacity: int, x: jax.Array, positions: jax.Array) -> jax.Array:
    """x f32[rows, tokens, heads, head_dim] at positions[rows, tokens], all less than `capacity`."""
    frequencies, factor = inverse_frequencies(rope, rotary_dim)
    angles = np.arange(capacity, dtype=np.float64)[:, None] * frequencies
    cos = jnp.asarray(np.cos(angles) * factor, jnp.float32)[positions][..., None, :]
    sin = jnp.asarray(np.sin(angles) * factor, jnp.float32)[positions][..., None, :]
    turning, still = x[..., :rotary_dim], x[..., rotary_dim:]
    if rope.pairs == "half":
        a, b = jnp.split(turning, 2, axis=-1)
        turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    else:
        a, b = turning[..., 0::2], turning[..., 1::2]
        turned = jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(turning.shape)
    return jnp.concatenate([turned, still], axis=-1)
