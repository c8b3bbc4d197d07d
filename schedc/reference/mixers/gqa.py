"""Grouped-query attention over all tokens written so far."""

from typing import Literal

import jax
import jax.numpy as jnp

from schedc.reference.kept import Pair, with_tokens
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, Project, projections
from schedc.reference.rope import rotate
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.gqa import Gqa

Side = Literal["q", "k", "v", "o"]
State = Pair
"""k and v, [rows, capacity, kv_heads, head_dim] each."""


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
    project = projections(dot, weights, note)
    q = _heads_of(mixer, weights, project, "q", x, positions, capacity, note)
    k = _heads_of(mixer, weights, project, "k", x, positions, capacity, note)
    v = _biased(mixer, weights, project, "v", x).reshape(rows, tokens, mixer.kv_heads, mixer.head_dim)
    note("attn.key", k), note("attn.value", v)
    state = with_tokens(state, (k, v), positions)

    if mixer.temperature is not None:
        steps = jnp.floor((positions + 1.0) / mixer.temperature.interval)
        q = q * (1.0 + mixer.temperature.scale * jnp.log1p(steps))[:, :, None, None]
    note("attn.queries", q * mixer.score_scale)
    mixed = _attended(mixer, weights, q, positions, state, note)
    if mixer.output_norm is not None:
        mixed = apply_norm(mixer.output_norm, weights, "attn.output_norm", "attn.output_norm_bias", mixed)
    mixed = mixed.reshape(rows, tokens, -1)
    if mixer.output_gate:
        mixed = mixed * jax.nn.sigmoid(project(x, "attn.gate"))
    return _biased(mixer, weights, project, "o", note("attn.attended", mixed)), state


def _biased(mixer: Gqa, weights: Weights, project: Project, side: Side, x: jax.Array) -> jax.Array:
    y = project(x, f"attn.{side}")
    return y + weights[f"attn.{side}_bias"] if getattr(mixer.bias, side) else y


def _heads_of(
    mixer: Gqa,
    weights: Weights,
    project: Project,
    side: Literal["q", "k"],
    x: jax.Array,
    positions: jax.Array,
    capacity: int,
    note: Notes,
) -> jax.Array:
    """Queries or keys, normalised and rotated: f32[rows, tokens, heads, head_dim]."""
    y = _biased(mixer, weights, project, side, x)
    heads_apart = (*x.shape[:2], -1, mixer.head_dim)

    def normed(y: jax.Array) -> jax.Array:
        if mixer.qk_norm is None:
            return y
        if mixer.qk_norm_over == "heads":
            y = y.reshape(*x.shape[:2], -1)
            note(f"attn.squares_{side}", jnp.square(y).sum(-1, keepdims=True))
        y = apply_norm(mixer.qk_norm, weights, f"attn.{side}_norm", f"attn.{side}_norm_bias", y)
        return y.reshape(heads_apart)

    y = y.reshape(heads_apart)
    y = y if mixer.qk_norm_after_rope else normed(y)
    if mixer.rope is not None:
        y = rotate(mixer.rope, mixer.rotary_dim, capacity, y, positions)
    return normed(y) if mixer.qk_norm_after_rope else y


def _attended(mixer: Gqa, weights: Weights, q: jax.Array, positions: jax.Array, state: State, note: Notes) -> jax.Array:
    """Of every query, the values of the tokens in sight by the softmax of their scores, laid out as `q`."""
    rows, tokens = q.shape[:2]
    keys, values = (part.astype(jnp.float32) for part in state)
    grouped = q.reshape(rows, tokens, mixer.kv_heads, mixer.heads // mixer.kv_heads, mixer.head_dim)
    highest = jax.lax.Precision.HIGHEST
    scores = jnp.einsum("rtkgd,rckd->rkgtc", grouped, keys, precision=highest) * mixer.score_scale
    if mixer.soft_cap is not None:
        scores = mixer.soft_cap * jnp.tanh(scores / mixer.soft_cap)
    scores = jnp.where(_in_sight(mixer, positions, keys.shape[1])[:, None, None], scores, -jnp.inf)

    def mix(sinks: jax.Array | None) -> jax.Array:
        mixed = jnp.einsum("rkgtc,rckd->rtkgd", _softmax(scores, sinks), values, precision=highest)
        return mixed.reshape(q.shape)

    mixed = mix(_sinks(mixer, weights))
    if note.on:
        note("attn.mixed", mix(None))
    return mixed


def _in_sight(mixer: Gqa, positions: jax.Array, capacity: int) -> jax.Array:
    """bool[rows, tokens, capacity]: the tokens that each attends to."""
    distance = positions[:, :, None] - jnp.arange(capacity)
    in_sight = distance >= 0
    if mixer.window is not None:
        in_sight &= distance < mixer.window
    if mixer.chunk is not None:
        in_sight &= positions[:, :, None] // mixer.chunk == jnp.arange(capacity) // mixer.chunk
    return in_sight


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
