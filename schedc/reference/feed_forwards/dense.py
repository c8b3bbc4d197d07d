"""A dense feed-forward, gated or plain."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from schedc.reference.notes import SILENT, Notes
from schedc.reference.weights import Dot, Weights
from schedc.spec.feed_forwards.dense import Dense

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "silu": jax.nn.silu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
    "relu2": lambda x: jnp.square(jax.nn.relu(x)),
}


def apply(
    feed_forward: Dense, weights: Weights, dot: Dot, x: jax.Array, prefix: str = "mlp", note: Notes = SILENT
) -> jax.Array:
    """f32[..., in] → f32[..., in]; `prefix` stands before the names of its weights."""

    def project(name: str, x: jax.Array) -> jax.Array:
        y = note(f"{prefix}.{name}", dot(x, weights[f"{prefix}.{name}"]))
        return y + weights[f"{prefix}.{name}_bias"] if getattr(feed_forward.bias, name) else y

    if not feed_forward.gated:
        activated = ACTIVATIONS[feed_forward.activation](project("up", x))
    else:
        activated = _gated(feed_forward, project("gate", x), project("up", x))
    return project("down", note(f"{prefix}.activated", activated))


def _gated(feed_forward: Dense, gate: jax.Array, up: jax.Array) -> jax.Array:
    of_both = OF_A_GATE.get(feed_forward.activation)
    if of_both is None:
        return ACTIVATIONS[feed_forward.activation](gate) * up
    return of_both(gate, up, **feed_forward.parameters_of_activation)


def _swiglu_clamped(gate: jax.Array, up: jax.Array, limit: float) -> jax.Array:
    gate, up = jnp.minimum(gate, limit), jnp.clip(up, -limit, limit)
    return gate * jax.nn.sigmoid(1.702 * gate) * (up + 1.0)


def _situ(gate: jax.Array, up: jax.Array, beta: float, linear_beta: float) -> jax.Array:
    return beta * jnp.tanh(gate / beta) * jax.nn.sigmoid(gate) * linear_beta * jnp.tanh(up / linear_beta)


OF_A_GATE: dict[str, Callable[..., jax.Array]] = {"swiglu_clamped": _swiglu_clamped, "situ": _situ}
"""Activations of a gate and the other side together, and the parameters that they have."""
