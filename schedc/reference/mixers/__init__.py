"""Mixers, one kind a file, by the `kind` of the spec."""

from collections.abc import Callable

import jax

from schedc.reference.mixers import gated_delta, gqa, kda, mla

State = tuple[jax.Array, ...]
"""What a mixer keeps of earlier tokens: arrays [rows, capacity, …] of every token, or a `Recurrent`."""

EMPTY_STATE: dict[str, Callable[..., State]] = {
    "gqa": gqa.empty_state,
    "mla": mla.empty_state,
    "kda": kda.empty_state,
    "gated_delta": gated_delta.empty_state,
}
APPLY: dict[str, Callable[..., tuple[jax.Array, State]]] = {
    "gqa": gqa.apply,
    "mla": mla.apply,
    "kda": kda.apply,
    "gated_delta": gated_delta.apply,
}
"""(mixer, weights, dot, x, positions, real, state, note); a token that is not real, bool[rows, tokens], is padding."""
