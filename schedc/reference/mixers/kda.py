"""Kimi Delta Attention (arXiv 2510.26692)."""

import jax
import jax.numpy as jnp

from schedc.reference.mixers import delta_rule
from schedc.reference.mixers.delta_rule import Heads, Inputs, unit
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, projections
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.kda import Kda
from schedc.weights.kept import Recurrent


def empty_state(mixer: Kda, rows: int, capacity: int, dtype: jnp.dtype) -> Recurrent:
    channels = mixer.heads * (2 * mixer.key_dim + mixer.value_dim)
    return delta_rule.empty_state(mixer.heads, mixer.key_dim, mixer.value_dim, mixer.conv, channels, rows)


def apply(
    mixer: Kda,
    weights: Weights,
    dot: Dot,
    x: jax.Array,
    positions: jax.Array,
    real: jax.Array,
    state: Recurrent,
    note: Notes = SILENT,
) -> tuple[jax.Array, Recurrent]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and what is kept after them."""
    by_head = (*x.shape[:2], mixer.heads)
    keys = mixer.heads * mixer.key_dim
    project = projections(dot, weights, note)

    def heads_of(convolved: jax.Array) -> Heads:
        q, k, v = jnp.split(convolved, [keys, 2 * keys], axis=-1)
        q, k, v = (part.reshape(len(part), mixer.heads, -1) for part in (q, k, v))
        return Heads(unit(q, mixer.qk_eps) * mixer.key_dim**-0.5, unit(k, mixer.qk_eps), v)

    f = project(project(x, "attn.decay_a"), "attn.decay_b") + weights["attn.decay_bias"]
    inputs = Inputs(
        jnp.concatenate([project(x, f"attn.{side}") for side in "qkv"], axis=-1),
        _log_decay(mixer, jnp.exp(weights["attn.decay_scale"])[:, None], f.reshape(*by_head, mixer.key_dim)),
        jax.nn.sigmoid(project(x, "attn.beta")),
    )
    filters = jnp.concatenate([weights[f"attn.{side}_conv"] for side in "qkv"])
    out, state = delta_rule.delta_rule(inputs, filters, heads_of, positions, real, state, note)

    z = project(x, "attn.gate") if mixer.gate_rank is None else project(project(x, "attn.gate_a"), "attn.gate_b")
    out = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", out)
    gated = out * jax.nn.sigmoid(z.reshape(*by_head, mixer.value_dim))
    return project(note("attn.attended", gated.reshape(*x.shape[:2], -1)), "attn.o"), state


def _log_decay(mixer: Kda, scale: jax.Array, f: jax.Array) -> jax.Array:
    """f32[..., heads, key_dim]; `scale` [heads, 1]."""
    if mixer.decay.kind == "softplus":
        return -scale * jax.nn.softplus(f)
    return -mixer.decay.bound * jax.nn.sigmoid(scale * f)
