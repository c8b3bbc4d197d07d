"""Mixture of experts: every expert's output by itself, times its weight, where a token has chosen it."""

import jax
import jax.numpy as jnp

from schedc.reference.feed_forwards import dense
from schedc.reference.feed_forwards.router import GIVEN_WINNERS, route
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, projections
from schedc.reference.weights import Dot, Weights
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.norm import Norm


def apply(moe: Moe, weights: Weights, dot: Dot, x: jax.Array, note: Notes = SILENT) -> jax.Array:
    """f32[..., hidden] → f32[..., hidden]."""
    project = projections(dot, weights, note)
    logits = project(x, "mlp.router")
    biases = weights.get("mlp.router_bias"), weights.get("mlp.selection_bias")
    ids, winning = route(moe.router, moe.top_k, logits, *biases, weights.get(GIVEN_WINNERS), note)
    note("mlp.winners", ids), note("mlp.weights", winning)
    y = x
    if moe.latent is not None:
        y = _norm(moe.latent.norm_in, weights, "mlp.latent_norm_in", project(x, "mlp.latent_in"))
        note("mlp.latent", y)
    out = note("mlp.sum", _chosen(moe, weights, dot, y, ids, winning, note))
    if moe.latent is not None:
        normed = note("mlp.normed_sum", _norm(moe.latent.norm_out, weights, "mlp.latent_norm_out", out))
        out = project(normed, "mlp.latent_out")
    if moe.shared is not None:
        bias = weights["mlp.shared.down_bias"] if moe.shared.bias.down else 0.0
        shared = dense.apply(moe.shared, weights, dot, x, "mlp.shared", note)
        gate = jax.nn.sigmoid(project(x, "mlp.shared_gate")) if moe.shared_gate else 1.0
        note("mlp.gated_shared", gate * shared - bias)
        note("mlp.out", out + gate * shared - bias)
        return out + gate * shared
    return note("mlp.out", out)


def _chosen(
    moe: Moe, weights: Weights, dot: Dot, x: jax.Array, ids: jax.Array, winning: jax.Array, note: Notes
) -> jax.Array:
    """Σ over the experts, one after the other. What is noted of them has a first axis of experts."""
    stacked = {name.removeprefix("mlp."): w for name, w in weights.items() if name.startswith("mlp.experts.")}

    def add(total: jax.Array, expert: tuple[jax.Array, Weights]) -> tuple[jax.Array, dict[str, jax.Array]]:
        number, own = expert
        inside = note.inside()
        chosen = (ids == number).any(-1, keepdims=True)
        weight = jnp.where(ids == number, winning, 0.0).sum(-1, keepdims=True)
        inside("experts.weight", weight)
        read = inside("experts.in", weight * x if moe.weigh_input else x)
        y = dense.apply(moe.expert, own, dot, read, "experts", inside)
        y = _norm(moe.expert_norm, weights, "mlp.expert_norm", y)
        return total + jnp.where(chosen, y if moe.weigh_input else weight * y, 0.0), inside.kept or {}

    total, of_experts = jax.lax.scan(add, jnp.zeros_like(x), (jnp.arange(moe.experts), stacked))
    for name, values in of_experts.items():
        note(f"mlp.{name.replace('experts', 'experts.*')}", values)
    return total


def _norm(norm: Norm | None, weights: Weights, name: str, x: jax.Array) -> jax.Array:
    return x if norm is None else apply_norm(norm, weights, f"{name}_weight", f"{name}_bias", x)
