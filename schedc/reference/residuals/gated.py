"""x = α ⊙ x + β ⊙ f(x)."""

import jax
import jax.numpy as jnp

from schedc.reference.weights import Weights
from schedc.spec.model import Half
from schedc.spec.residuals.gated import GatedResidual


def start(residual: GatedResidual, x: jax.Array, layers: int) -> jax.Array:
    return x


def read(residual: GatedResidual, weights: Weights, half: Half, layer: jax.Array, x: jax.Array) -> jax.Array:
    return x


def join(
    residual: GatedResidual, weights: Weights, half: Half, layer: jax.Array, x: jax.Array, y: jax.Array
) -> jax.Array:
    w = weights[f"{half}_residual.gate"] / residual.temperature
    beta = jax.nn.sigmoid(w)
    alpha = jnp.sqrt(jnp.maximum(jax.nn.sigmoid(-w) * (1.0 + beta), residual.floor))
    return alpha * x + beta * y


def running(x: jax.Array) -> jax.Array:
    return x


def finish(residual: GatedResidual, outer: Weights, layers: int, x: jax.Array) -> jax.Array:
    return x
