"""Norms over the last axis, in f32."""

import jax
import jax.numpy as jnp

from schedc.reference.weights import Weights
from schedc.spec.norm import Norm


def apply_norm(norm: Norm, weights: Weights, weight: str, bias: str, x: jax.Array) -> jax.Array:
    """f32[..., width]; `weight` and `bias` are names in `weights`."""
    x = x.astype(jnp.float32)
    if norm.kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    y = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + norm.eps)
    if norm.weight:
        y = y * (weights[weight] + (1.0 if norm.unit_offset else 0.0))
    return y + weights[bias] if norm.bias else y
