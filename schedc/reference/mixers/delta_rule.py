"""The gated delta rule behind short convolutions, one token after the other (arXiv 2412.06464 and 2510.26692)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from schedc.reference.notes import SILENT, Notes
from schedc.weights.kept import Recurrent

HIGHEST = jax.lax.Precision.HIGHEST


class Inputs(NamedTuple):
    """Of every token, f32[rows, tokens, …]."""

    channels: jax.Array
    """[channels]: projections of q, k and v side by side, before the convolutions."""
    log_decay: jax.Array
    """[heads, key_dim], or [heads, 1] for one decay a head; not above 0."""
    beta: jax.Array
    """[heads]"""


class Heads(NamedTuple):
    """Of one token, f32[rows, heads, dim]."""

    q: jax.Array
    k: jax.Array
    v: jax.Array


def empty_state(heads: int, key_dim: int, value_dim: int, conv: int, channels: int, rows: int) -> Recurrent:
    """f32, whatever the dtype of caches."""
    return Recurrent(
        jnp.zeros((rows, heads, value_dim, key_dim), jnp.float32), jnp.zeros((rows, conv - 1, channels), jnp.float32)
    )


def delta_rule(
    inputs: Inputs,
    filters: jax.Array,
    heads_of: Callable[[jax.Array], Heads],
    positions: jax.Array,
    real: jax.Array,
    kept: Recurrent,
    note: Notes = SILENT,
) -> tuple[jax.Array, Recurrent]:
    """o, f32[rows, tokens, heads, value_dim], and what is kept after the last real token.

    `filters` f32[channels, conv]; `heads_of` splits convolved channels f32[rows, channels]. A token at position 0
    starts from zeros; a token that is not `real`, bool[rows, tokens], changes nothing.
    """

    def token(
        kept: Recurrent, now: tuple[Inputs, jax.Array, jax.Array]
    ) -> tuple[Recurrent, tuple[jax.Array, dict[str, jax.Array]]]:
        inside = note.inside()
        given, position, is_real = now
        old = Recurrent(*(jnp.where(_over(position == 0, part), 0.0, part) for part in kept))
        seen = jnp.concatenate([old.windows, given.channels[:, None]], axis=1)
        q, k, v = heads_of(jax.nn.silu(jnp.einsum("rtc,ct->rc", seen, filters, precision=HIGHEST)))
        inside("attn.convolved_q", q), inside("attn.convolved_k", k), inside("attn.convolved_v", v)

        state = old.state * jnp.exp(given.log_decay)[:, :, None, :]
        predicted = jnp.einsum("rhvk,rhk->rhv", state, k, precision=HIGHEST)
        state = state + (given.beta[:, :, None] * (v - predicted))[..., None] * k[:, :, None, :]
        out = jnp.einsum("rhvk,rhk->rhv", state, q, precision=HIGHEST)

        new = Recurrent(state, seen[:, 1:])
        return Recurrent(*(jnp.where(_over(is_real, a), a, b) for a, b in zip(new, kept, strict=True))), (
            out,
            inside.kept or {},
        )

    by_token = jax.tree.map(lambda array: jnp.moveaxis(array, 1, 0), (inputs, positions, real))
    kept, (out, inside) = jax.lax.scan(token, kept, by_token)
    for name, values in inside.items():
        note(name, jnp.moveaxis(values, 0, 1))
    if note.on:
        note("attn.decays", jnp.exp(inputs.log_decay)), note("attn.betas", inputs.beta)
    return note("attn.read", jnp.moveaxis(out, 0, 1)), kept


def unit(x: jax.Array, eps: float) -> jax.Array:
    """x / sqrt(Σ x² + eps), over the last axis."""
    return x * jax.lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) + eps)


def _over(of_row: jax.Array, array: jax.Array) -> jax.Array:
    """bool[rows] with the axes of `array`, [rows, …]."""
    return of_row.reshape(-1, *[1] * (array.ndim - 1))
