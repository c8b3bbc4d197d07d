"""Gated delta rule: one decay a head, every key head read by several value heads (arXiv 2412.06464)."""

import jax
import jax.numpy as jnp

from schedc.reference.mixers import delta_rule
from schedc.reference.mixers.delta_rule import Heads, Inputs, unit
from schedc.reference.norm import apply_norm
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.weights.kept import Recurrent


def empty_state(mixer: GatedDelta, rows: int, capacity: int, dtype: jnp.dtype) -> Recurrent:
    channels = 2 * mixer.key_heads * mixer.key_dim + mixer.value_heads * mixer.value_dim
    return delta_rule.empty_state(mixer.value_heads, mixer.key_dim, mixer.value_dim, mixer.conv, channels, rows)


def apply(
    mixer: GatedDelta,
    weights: Weights,
    dot: Dot,
    x: jax.Array,
    positions: jax.Array,
    real: jax.Array,
    state: Recurrent,
) -> tuple[jax.Array, Recurrent]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and what is kept after them."""
    keys = mixer.key_heads * mixer.key_dim

    def heads_of(convolved: jax.Array) -> Heads:
        q, k, v = jnp.split(convolved, [keys, 2 * keys], axis=-1)
        q, k = (
            jnp.repeat(
                unit(part.reshape(len(part), mixer.key_heads, mixer.key_dim), mixer.qk_eps),
                mixer.value_heads // mixer.key_heads,
                axis=1,
            )
            for part in (q, k)
        )
        return Heads(q * mixer.key_dim**-0.5, k, v.reshape(len(v), mixer.value_heads, mixer.value_dim))

    dt = dot(x, weights["attn.decay"]) + weights["attn.decay_bias"]
    inputs = Inputs(
        jnp.concatenate([dot(x, weights[f"attn.{side}"]) for side in "qkv"], axis=-1),
        (-jnp.exp(weights["attn.decay_scale"]) * jax.nn.softplus(dt))[..., None],
        jax.nn.sigmoid(dot(x, weights["attn.beta"])),
    )
    filters = jnp.concatenate([weights[f"attn.{side}_conv"] for side in "qkv"])
    out, state = delta_rule.delta_rule(inputs, filters, heads_of, positions, real, state)

    out = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", out)
    gated = out.reshape(*x.shape[:2], -1) * jax.nn.silu(dot(x, weights["attn.gate"]))
    return dot(gated, weights["attn.o"]), state
