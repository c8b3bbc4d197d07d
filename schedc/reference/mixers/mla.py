"""Multi-head latent attention by its definition: keys and values of every head are made from latents.

From those of the cache, or, where the cache is expanded, from those of the new tokens, and cached.
"""

import jax
import jax.numpy as jnp

from schedc.reference.kept import Pair, with_tokens
from schedc.reference.norm import apply_norm
from schedc.reference.notes import SILENT, Notes, projections
from schedc.reference.rope import rotate
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.mla import Mla
from schedc.spec.norm import Norm

State = Pair
"""Latents [rows, capacity, 1, kv_rank], normalised, and shared keys [rows, capacity, 1, rope_dim], rotated; expanded,
keys [rows, capacity, heads, nope_dim + rope_dim] and values [rows, capacity, heads, value_dim]. The token at position p
stands at index p."""


def empty_state(mixer: Mla, rows: int, capacity: int, dtype: jnp.dtype) -> State:
    expanded = mixer.cache == "expanded"
    heads = mixer.heads if expanded else 1
    widths = (mixer.head_dim, mixer.value_dim) if expanded else (mixer.kv_rank, mixer.rope_dim)
    return jnp.zeros((rows, capacity, heads, widths[0]), dtype), jnp.zeros((rows, capacity, heads, widths[1]), dtype)


def apply(
    mixer: Mla,
    weights: Weights,
    dot: Dot,
    x: jax.Array,
    positions: jax.Array,
    real: jax.Array,
    state: State,
    note: Notes = SILENT,
) -> tuple[jax.Array, State]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and `state` with their latents.

    Every position below those given must be in `state` already, or among those given. Tokens that are not `real` are
    kept behind the others, where later tokens overwrite them before they are seen.
    """
    rows, tokens, _ = x.shape
    capacity = state[0].shape[1]
    project = projections(dot, weights, note)

    def turned(y: jax.Array) -> jax.Array:
        return y if mixer.rope is None else rotate(mixer.rope, mixer.rotary_dim, capacity, y, positions)

    def normed(name: str, norm: Norm | None, y: jax.Array) -> jax.Array:
        return y if norm is None else apply_norm(norm, weights, f"attn.{name}", f"attn.{name}_bias", y)

    if mixer.q_rank is None:
        q = project(x, "attn.q")
    else:
        q = project(note("attn.q_latent", normed("q_a_norm", mixer.q_norm, project(x, "attn.q_a"))), "attn.q_b")
    q = q.reshape(rows, tokens, mixer.heads, mixer.head_dim)
    q = jnp.concatenate([q[..., : mixer.nope_dim], turned(q[..., mixer.nope_dim :])], axis=-1)

    compressed = project(x, "attn.kv_a")
    latent = normed("kv_a_norm", mixer.kv_norm, compressed[..., : mixer.kv_rank])[:, :, None]
    shared = turned(compressed[:, :, None, mixer.kv_rank :])
    note("attn.latent", latent), note("attn.shared_key", shared)

    def expand(latents: jax.Array, keys: jax.Array) -> State:
        """Keys and values of every head, from [rows, n, 1, width] each."""
        # Of the new tokens, or of all that are cached, which no phase of a kernel has.
        up = project if mixer.cache == "expanded" else lambda y, name: dot(y, weights[name])
        expanded = up(latents[:, :, 0], "attn.kv_b").reshape(*latents.shape[:2], mixer.heads, -1)
        shared_keys = jnp.broadcast_to(keys, (*keys.shape[:2], mixer.heads, mixer.rope_dim))
        k = jnp.concatenate([expanded[..., : mixer.nope_dim], shared_keys], axis=-1)
        return k, expanded[..., mixer.nope_dim :]

    kept = (latent, shared) if mixer.cache == "absorbed" else expand(latent, shared)
    new = with_tokens(state, kept, positions)
    cached = new[0].astype(jnp.float32), new[1].astype(jnp.float32)
    k, v = expand(*cached) if mixer.cache == "absorbed" else cached

    highest = jax.lax.Precision.HIGHEST
    scores = jnp.einsum("rthd,rchd->rhtc", q, k, precision=highest) * mixer.score_scale
    in_sight = positions[:, :, None] >= jnp.arange(capacity)
    probabilities = jax.nn.softmax(jnp.where(in_sight[:, None], scores, -jnp.inf), axis=-1)
    mixed = note("attn.values", jnp.einsum("rhtc,rchd->rthd", probabilities, v, precision=highest))
    if mixer.cache == "expanded":
        note("attn.key", kept[0]), note("attn.value", kept[1]), note("attn.queries", q * mixer.score_scale)
    elif note.on:
        _note_absorbed(mixer, weights, dot, q, note)
        mixed_latents = jnp.einsum("rhtc,rcl->rthl", probabilities, cached[0][:, :, 0], precision=highest)
        note("attn.mixed_latents", mixed_latents)
    mixed = mixed.reshape(rows, tokens, -1)
    if mixer.output_gate:
        mixed = mixed * jax.nn.sigmoid(project(x, "attn.gate"))
    return project(note("attn.attended", mixed), "attn.o"), new


def _note_absorbed(mixer: Mla, weights: Weights, dot: Dot, q: jax.Array, note: Notes) -> None:
    """The same queries as a kernel asks cached latents with: q_nope · W_uk beside q_rope, [rows, tokens, heads, …]."""
    nope, rope = q[..., : mixer.nope_dim], q[..., mixer.nope_dim :]
    up_keys = weights["attn.kv_b"].reshape(mixer.heads, -1, mixer.kv_rank)[:, : mixer.nope_dim]
    absorbed = [dot(nope[:, :, head], up_keys[head].T) for head in range(mixer.heads)]
    note("attn.q_nope", nope), note("attn.q_rope", rope)
    whole = jnp.concatenate([note("attn.q_absorbed", jnp.stack(absorbed, axis=2)), rope], axis=-1)
    note("attn.queries", whole * mixer.score_scale)
