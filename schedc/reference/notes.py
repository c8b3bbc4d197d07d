"""Named values inside a layer, kept only where they are asked for.

What a projection gives is noted under the name of its weight, such as `attn.q`; other values have names of their own.
A phase of the step graph says which of them its result is (`schedc/lower/values.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from schedc.reference.weights import Dot, Weights

EACH = "*"
"""Stands in the name of a value for each of several members, such as experts, which are its first axis."""


class Notes:
    """Call it with a name and a value, which it returns. Without `kept` it does nothing else.

    The body of a scan needs notes of its own (`inside`), whose `kept` it gives out with its results.
    """

    def __init__(self, kept: dict[str, jax.Array] | None = None) -> None:
        self.kept = kept

    @property
    def on(self) -> bool:
        """Whether values are kept; what is computed for the notes alone asks this first."""
        return self.kept is not None

    def __call__(self, name: str, value: jax.Array) -> jax.Array:
        if self.kept is not None:
            self.kept[name] = value
        return value

    def inside(self) -> Notes:
        return Notes({}) if self.on else SILENT


SILENT = Notes()

Project = Callable[[jax.Array, str], jax.Array]
"""x[..., in], name of a weight [out, in] → f32[..., out]."""


def projections(dot: Dot, weights: Weights, note: Notes) -> Project:
    """The product with a weight, noted under its name."""
    return lambda x, name: note(name, dot(x, weights[name]))
