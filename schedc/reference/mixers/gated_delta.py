"""Gated delta rule: one decay a head, every key head read by several value heads (arXiv 2412.06464)."""

import jax
import jax.numpy as jnp

from schedc.reference.mixers import delta_rule
from schedc.reference.mixers.delta_rule import Heads, Inputs, unit
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, projections
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
    note: Notes = SILENT,
) -> tuple[jax.Array, Recurrent]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and what is kept after them."""
    keys = mixer.key_heads * mixer.key_dim
    project = projections(dot, weights, note)

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

    dt = project(x, "attn.decay") + weights["attn.decay_bias"]
    inputs = Inputs(
        jnp.concatenate([project(x, f"attn.{side}") for side in "qkv"], axis=-1),
        (-jnp.exp(weights["attn.decay_scale"]) * jax.nn.softplus(dt))[..., None],
        jax.nn.sigmoid(project(x, "attn.beta")),
    )
    filters = jnp.concatenate([weights[f"attn.{side}_conv"] for side in "qkv"])
    out, state = delta_rule.delta_rule(inputs, filters, heads_of, positions, real, state, note)
    for side in ("attn.convolved_q", "attn.convolved_k"):
        if note.kept is not None:
            note(side, note.kept[side][:, :, :: mixer.value_heads // mixer.key_heads])

    out = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", out)
    gated = out.reshape(*x.shape[:2], -1) * jax.nn.silu(project(x, "attn.gate"))
    return project(note("attn.attended", gated), "attn.o"), state
