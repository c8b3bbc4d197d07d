"""Kimi Delta Attention (arXiv 2510.26692)."""

import jax
import jax.numpy as jnp

from schedc.reference.mixers import delta_rule
from schedc.reference.mixers.delta_rule import Heads, Inputs, unit
from schedc.reference.norm import apply_norm
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.kda import Kda
from schedc.weights.kept import Recurrent


def empty_state(mixer: Kda, rows: int, capacity: int, dtype: jnp.dtype) -> Recurrent:
    channels = mixer.heads * (2 * mixer.key_dim + mixer.value_dim)
    return delta_rule.empty_state(mixer.heads, mixer.key_dim, mixer.value_dim, mixer.conv, channels, rows)


def apply(
    mixer: Kda, weights: Weights, dot: Dot, x: jax.Array, positions: jax.Array, real: jax.Array, state: Recurrent
) -> tuple[jax.Array, Recurrent]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and what is kept after them."""
    by_head = (*x.shape[:2], mixer.heads)
    keys = mixer.heads * mixer.key_dim

    def heads_of(convolved: jax.Array) -> Heads:
        q, k, v = jnp.split(convolved, [keys, 2 * keys], axis=-1)
        q, k, v = (part.reshape(len(part), mixer.heads, -1) for part in (q, k, v))
        return Heads(unit(q, mixer.qk_eps) * mixer.key_dim**-0.5, unit(k, mixer.qk_eps), v)

    f = dot(dot(x, weights["attn.decay_a"]), weights["attn.decay_b"]) + weights["attn.decay_bias"]
    inputs = Inputs(
        jnp.concatenate([dot(x, weights[f"attn.{side}"]) for side in "qkv"], axis=-1),
        _log_decay(mixer, jnp.exp(weights["attn.decay_scale"])[:, None], f.reshape(*by_head, mixer.key_dim)),
        jax.nn.sigmoid(dot(x, weights["attn.beta"])),
    )
    filters = jnp.concatenate([weights[f"attn.{side}_conv"] for side in "qkv"])
    out, state = delta_rule.delta_rule(inputs, filters, heads_of, positions, real, state)

    if mixer.gate_rank is None:
        z = dot(x, weights["attn.gate"])
    else:
        z = dot(dot(x, weights["attn.gate_a"]), weights["attn.gate_b"])
    out = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", out)
    gated = out * jax.nn.sigmoid(z.reshape(*by_head, mixer.value_dim))
    return dot(gated.reshape(*x.shape[:2], -1), weights["attn.o"]), state


def _log_decay(mixer: Kda, scale: jax.Array, f: jax.Array) -> jax.Array:
    """f32[..., heads, key_dim]; `scale` [heads, 1]."""
    if mixer.decay.kind == "softplus":
        return -scale * jax.nn.softplus(f)
    return -mixer.decay.bound * jax.nn.sigmoid(scale * f)
