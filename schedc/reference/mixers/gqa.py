"""Grouped-query attention over all tokens written so far."""

import jax
import jax.numpy as jnp

from schedc.reference.kept import kept_as
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, projections
from schedc.reference.rope import rotate
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.gqa import Gqa

State = tuple[jax.Array, jax.Array]
"""k and v, [rows, capacity, kv_heads, head_dim] each; the token at position p stands at index p."""


def empty_state(mixer: Gqa, rows: int, capacity: int, dtype: jnp.dtype) -> State:
    shape = (rows, capacity, mixer.kv_heads, mixer.head_dim)
    return jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)


def apply(
    mixer: Gqa,
    weights: Weights,
    dot: Dot,
    x: jax.Array,
    positions: jax.Array,
    real: jax.Array,
    state: State,
    note: Notes = SILENT,
) -> tuple[jax.Array, State]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and `state` with their k and v.

    Every position below those given must be in `state` already, or among those given. Tokens that are not `real` are
    kept behind the others, where later tokens overwrite them before they are seen.
    """
    rows, tokens, _ = x.shape
    capacity = state[0].shape[1]
    of_weight = projections(dot, weights, note)

    def project(side: str, heads: int) -> jax.Array:
        y = of_weight(x, f"attn.{side}")
        if getattr(mixer.bias, side):
            y = y + weights[f"attn.{side}_bias"]
        heads_apart = (rows, tokens, heads, mixer.head_dim)
        if side == "v":
            return y.reshape(heads_apart)

        def normed(y: jax.Array) -> jax.Array:
            if mixer.qk_norm is None:
                return y
            joint = y
            if mixer.qk_norm_over == "heads":
                joint = y.reshape(rows, tokens, -1)
                note(f"attn.squares_{side}", jnp.square(joint).sum(-1, keepdims=True))
            y = apply_norm(mixer.qk_norm, weights, f"attn.{side}_norm", f"attn.{side}_norm_bias", joint)
            return y.reshape(heads_apart)

        y = y.reshape(heads_apart)
        y = y if mixer.qk_norm_after_rope else normed(y)
        if mixer.rope is not None:
            y = rotate(mixer.rope, mixer.rotary_dim, capacity, y, positions)
        return normed(y) if mixer.qk_norm_after_rope else y

    q, k, v = project("q", mixer.heads), project("k", mixer.kv_heads), project("v", mixer.kv_heads)
    note("attn.key", k), note("attn.value", v)
    at = jnp.arange(rows)[:, None], positions
    keys, values = (old.at[at].set(kept_as(new, old.dtype)) for old, new in zip(state, (k, v), strict=True))

    q = q.reshape(rows, tokens, mixer.kv_heads, mixer.heads // mixer.kv_heads, mixer.head_dim)
    if mixer.temperature is not None:
        steps = jnp.floor((positions + 1.0) / mixer.temperature.interval)
        q = q * (1.0 + mixer.temperature.scale * jnp.log1p(steps))[:, :, None, None, None]
    note("attn.queries", (q * mixer.score_scale).reshape(rows, tokens, mixer.heads, mixer.head_dim))
    highest = jax.lax.Precision.HIGHEST
    scores = jnp.einsum("rtkgd,rckd->rkgtc", q, keys.astype(jnp.float32), precision=highest) * mixer.score_scale
    if mixer.soft_cap is not None:
        scores = mixer.soft_cap * jnp.tanh(scores / mixer.soft_cap)
    distance = positions[:, :, None] - jnp.arange(capacity)
    in_sight = distance >= 0
    if mixer.window is not None:
        in_sight &= distance < mixer.window
    if mixer.chunk is not None:
        in_sight &= positions[:, :, None] // mixer.chunk == jnp.arange(capacity) // mixer.chunk
    scores = jnp.where(in_sight[:, None, None], scores, -jnp.inf)

    def mix(sinks: jax.Array | None) -> jax.Array:
        probabilities = _softmax(scores, sinks)
        return jnp.einsum("rkgtc,rckd->rtkgd", probabilities, values.astype(jnp.float32), precision=highest)

    mixed = mix(_sinks(mixer, weights))
    if note.on:
        note("attn.mixed", mix(None).reshape(rows, tokens, mixer.heads, mixer.head_dim))
    if mixer.output_norm is not None:
        heads_apart = mixed.reshape(rows, tokens, mixer.heads, mixer.head_dim)
        mixed = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", heads_apart)
    mixed = mixed.reshape(rows, tokens, -1)
    if mixer.output_gate:
        mixed = mixed * jax.nn.sigmoid(of_weight(x, "attn.gate"))
    out = of_weight(note("attn.attended", mixed), "attn.o")
    if mixer.bias.o:
        out = out + weights["attn.o_bias"]
    return out, (keys, values)


def _sinks(mixer: Gqa, weights: Weights) -> jax.Array | None:
    """f32[kv_heads, queries a kv head, 1, 1]."""
    if not mixer.sinks:
        return None
    return weights["attn.sinks"].reshape(mixer.kv_heads, mixer.heads // mixer.kv_heads, 1, 1)


def _softmax(scores: jax.Array, sinks: jax.Array | None) -> jax.Array:
    """Over the keys of f32[rows, kv_heads, queries a kv head, tokens, keys]; a sink joins the denominator alone."""
    if sinks is None:
        return jax.nn.softmax(scores, axis=-1)
    highest = jnp.maximum(scores.max(-1, keepdims=True), sinks)
    exponentials = jnp.exp(scores - highest)
    return exponentials / (exponentials.sum(-1, keepdims=True) + jnp.exp(sinks - highest))
