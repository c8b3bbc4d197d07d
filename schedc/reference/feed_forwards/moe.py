"""Mixture of experts: every expert's output by itself, times its weight, where a token has chosen it."""

import jax
import jax.numpy as jnp

from schedc.reference.feed_forwards import dense
from schedc.reference.feed_forwards.router import route
from schedc.reference.norm import apply_norm
from schedc.reference.weights import Dot, Weights
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.norm import Norm


def apply(moe: Moe, weights: Weights, dot: Dot, x: jax.Array) -> jax.Array:
    """f32[..., hidden] → f32[..., hidden]."""
    logits = dot(x, weights["mlp.router"])
    ids, winning = route(
        moe.router, moe.top_k, logits, weights.get("mlp.router_bias"), weights.get("mlp.selection_bias")
    )
    y = x
    if moe.latent is not None:
        y = _norm(moe.latent.norm_in, weights, "mlp.latent_norm_in", dot(x, weights["mlp.latent_in"]))
    out = _chosen(moe, weights, dot, y, ids, winning)
    if moe.latent is not None:
        out = dot(_norm(moe.latent.norm_out, weights, "mlp.latent_norm_out", out), weights["mlp.latent_out"])
    if moe.shared is not None:
        shared = dense.apply(moe.shared, weights, dot, x, "mlp.shared")
        gate = jax.nn.sigmoid(dot(x, weights["mlp.shared_gate"])) if moe.shared_gate else 1.0
        out = out + gate * shared
    return out


def _chosen(moe: Moe, weights: Weights, dot: Dot, x: jax.Array, ids: jax.Array, winning: jax.Array) -> jax.Array:
    """Σ over the experts, one after the other."""
    stacked = {name.removeprefix("mlp."): w for name, w in weights.items() if name.startswith("mlp.experts.")}

    def add(total: jax.Array, expert: tuple[jax.Array, Weights]) -> tuple[jax.Array, None]:
        number, own = expert
        chosen = (ids == number).any(-1, keepdims=True)
        weight = jnp.where(ids == number, winning, 0.0).sum(-1, keepdims=True)
        y = dense.apply(moe.expert, own, dot, weight * x if moe.weigh_input else x, "experts")
        y = _norm(moe.expert_norm, weights, "mlp.expert_norm", y)
        return total + jnp.where(chosen, y if moe.weigh_input else weight * y, 0.0), None

    return jax.lax.scan(add, jnp.zeros_like(x), (jnp.arange(moe.experts), stacked))[0]


def _norm(norm: Norm | None, weights: Weights, name: str, x: jax.Array) -> jax.Array:
    return x if norm is None else apply_norm(norm, weights, f"{name}_weight", f"{name}_bias", x)
