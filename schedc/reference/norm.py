"""Norms over the last axis, in f32."""

import jax
import jax.numpy as jnp

from schedc.reference.weights import Weights
from schedc.spec.norm import Norm


def apply_norm(norm: Norm, weights: Weights, weight: str, bias: str, x: jax.Array) -> jax.Array:
    """f32[..., width]; `weight` and `bias` are names in `weights`."""
    x = x.astype(jnp.float32)
    factor = weights[weight] + float(norm.unit_offset) if norm.weight else jnp.float32(1.0)
    if norm.scale_first:
        x = x * factor
    if norm.kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    y = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + norm.eps)
    if not norm.scale_first:
        y = y * factor
    return y + weights[bias] if norm.bias else y
