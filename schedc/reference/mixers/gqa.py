"""Grouped-query attention over all tokens written so far."""

import jax
import jax.numpy as jnp

from schedc.reference.norm import apply_norm
from schedc.reference.rope import rotate
from schedc.reference.weights import Dot, Weights
from schedc.spec.mixers.gqa import Gqa

State = tuple[jax.Array, jax.Array]
"""k and v, [rows, capacity, kv_heads, head_dim] each; the token at position p stands at index p."""


def empty_state(mixer: Gqa, rows: int, capacity: int, dtype: jnp.dtype) -> State:
    shape = (rows, capacity, mixer.kv_heads, mixer.head_dim)
    return jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)


def apply(
    mixer: Gqa, weights: Weights, dot: Dot, x: jax.Array, positions: jax.Array, state: State
) -> tuple[jax.Array, State]:
    """x, f32[rows, tokens, hidden], at `positions` → f32[rows, tokens, hidden], and `state` with their k and v.

    Every position below those given must be in `state` already, or among those given.
    """
    rows, tokens, _ = x.shape
    capacity = state[0].shape[1]

    def project(side: str, heads: int) -> jax.Array:
        y = dot(x, weights[f"attn.{side}"])
        if getattr(mixer.bias, side):
            y = y + weights[f"attn.{side}_bias"]
        y = y.reshape(rows, tokens, heads, mixer.head_dim)
        if side != "v" and mixer.qk_norm is not None:
            y = apply_norm(mixer.qk_norm, weights, f"attn.{side}_norm", f"attn.{side}_norm_bias", y)
        if side != "v" and mixer.rope is not None:
            y = rotate(mixer.rope, mixer.rotary_dim, capacity, y, positions)
        return y

    q, k, v = project("q", mixer.heads), project("k", mixer.kv_heads), project("v", mixer.kv_heads)
    at = jnp.arange(rows)[:, None], positions
    keys, values = state[0].at[at].set(k.astype(state[0].dtype)), state[1].at[at].set(v.astype(state[1].dtype))

    q = q.reshape(rows, tokens, mixer.kv_heads, mixer.heads // mixer.kv_heads, mixer.head_dim)
    highest = jax.lax.Precision.HIGHEST
    scores = jnp.einsum("rtkgd,rckd->rkgtc", q, keys.astype(jnp.float32), precision=highest) * mixer.score_scale
    if mixer.soft_cap is not None:
        scores = mixer.soft_cap * jnp.tanh(scores / mixer.soft_cap)
    distance = positions[:, :, None] - jnp.arange(capacity)
    in_sight = distance >= 0
    if mixer.window is not None:
        in_sight &= distance < mixer.window
    probabilities = jax.nn.softmax(jnp.where(in_sight[:, None, None], scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("rkgtc,rckd->rtkgd", probabilities, values.astype(jnp.float32), precision=highest)
    out = dot(mixed.reshape(rows, tokens, -1), weights["attn.o"])
    if mixer.bias.o:
        out = out + weights["attn.o_bias"]
    return out, (keys, values)
