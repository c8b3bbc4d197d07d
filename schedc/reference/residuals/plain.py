"""x += multiplier · f(x)."""

import jax

from schedc.reference.weights import Weights
from schedc.spec.model import Half
from schedc.spec.residuals.plain import PlainResidual


def start(residual: PlainResidual, x: jax.Array, layers: int) -> jax.Array:
    return x


def read(residual: PlainResidual, weights: Weights, half: Half, layer: jax.Array, x: jax.Array) -> jax.Array:
    return x


def join(
    residual: PlainResidual, weights: Weights, half: Half, layer: jax.Array, x: jax.Array, y: jax.Array
) -> jax.Array:
    return x + residual.multiplier * y


def running(x: jax.Array) -> jax.Array:
    return x


def finish(residual: PlainResidual, outer: Weights, layers: int, x: jax.Array) -> jax.Array:
    return x
