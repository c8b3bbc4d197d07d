"""How the output of half a block joins the residual stream."""

import jax
import jax.numpy as jnp

from schedc.reference.weights import Weights
from schedc.spec.model import Half
from schedc.spec.residuals import Residual


def add_residual(residual: Residual, weights: Weights, half: Half, x: jax.Array, y: jax.Array) -> jax.Array:
    """f32[..., hidden] of the stream x and the output y."""
    if residual.kind == "plain":
        return x + residual.multiplier * y
    w = weights[f"{half}_residual.gate"] / residual.temperature
    beta = jax.nn.sigmoid(w)
    alpha = jnp.sqrt(jnp.maximum(jax.nn.sigmoid(-w) * (1.0 + beta), residual.floor))
    return alpha * x + beta * y
