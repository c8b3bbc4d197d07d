"""Mixers, one kind a file, by the `kind` of the spec."""

from collections.abc import Callable

import jax

from schedc.reference.mixers import gqa, mla

State = tuple[jax.Array, ...]

EMPTY_STATE: dict[str, Callable[..., State]] = {"gqa": gqa.empty_state, "mla": mla.empty_state}
APPLY: dict[str, Callable[..., tuple[jax.Array, State]]] = {"gqa": gqa.apply, "mla": mla.apply}
