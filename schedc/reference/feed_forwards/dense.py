"""A dense feed-forward, gated or plain."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from schedc.reference.weights import Dot, Weights
from schedc.spec.feed_forwards.dense import Dense

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "silu": jax.nn.silu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
    "relu2": lambda x: jnp.square(jax.nn.relu(x)),
}


def apply(feed_forward: Dense, weights: Weights, dot: Dot, x: jax.Array) -> jax.Array:
    """f32[..., hidden] → f32[..., hidden]."""

    def project(name: str, x: jax.Array) -> jax.Array:
        y = dot(x, weights[f"mlp.{name}"])
        return y + weights[f"mlp.{name}_bias"] if getattr(feed_forward.bias, name) else y

    activation = ACTIVATIONS[feed_forward.activation]
    inner = activation(project("gate" if feed_forward.gated else "up", x))
    if feed_forward.gated:
        inner = inner * project("up", x)
    return project("down", inner)
