"""What mixers keep of a sequence: something of every token, or a state, whose size does not grow with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Recurrent(NamedTuple):
    """Of every head a state, and of every channel of the short convolutions the inputs that the next token sees.

    Arrays of numpy or jax, with any axes before these; zeros before the first token.
    """

    state: Any
    """f32[heads, value_dim, key_dim]"""
    windows: Any
    """f32[conv - 1, channels of q, k and v], before the convolution, the oldest first."""


Kept = tuple[np.ndarray, ...]
"""What is kept of a sequence: one f32[tokens, heads, width] a side, of every token, or a `Recurrent`."""


def kept_of_row(kept: Kept, row: int, tokens: int) -> Kept:
    """Of the first `tokens` of a row, which are all that it has; `kept` is that of all rows, [rows, …]."""
    if isinstance(kept, Recurrent):
        return Recurrent(*(part[row] for part in kept))
    return tuple(side[row, :tokens] for side in kept)
