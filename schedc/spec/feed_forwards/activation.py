"""The activation of a feed-forward, with its parameters."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem

ACTIVATIONS = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2", "swiglu_clamped", "situ"]

OF_A_GATE: dict[str, dict[str, str]] = {
    "swiglu_clamped": {"limit": "clamps at it, as in limit: 7.0"},
    "situ": {
        "beta": "bounds its gate, as in beta: 4.0",
        "linear_beta": "bounds its other side, as in linear_beta: 25.0",
    },
}
"""Activations that work on a gate and its other side together → their parameters, and what each does."""


class Activated(Part):
    """A feed-forward of `width`.

    `gelu` is the exact form x·Φ(x), `gelu_tanh` its tanh approximation, `relu2` is relu(x)².

    Of a gate a and the other side b of a gated feed-forward:
    `swiglu_clamped`: with g = min(a, limit) and u = clip(b, -limit, limit), g·sigmoid(1.702·g)·(u + 1);
    `situ`: beta·tanh(a / beta)·sigmoid(a) · linear_beta·tanh(b / linear_beta), in f32 (Kimi K3).
    """

    kind: str
    width: int = Field(gt=0)
    gated: bool
    activation: ACTIVATIONS
    limit: float | None = Field(default=None, gt=0, description="of swiglu_clamped")
    beta: float | None = Field(default=None, gt=0, description="of situ")
    linear_beta: float | None = Field(default=None, gt=0, description="of situ")

    @property
    def parameters_of_activation(self) -> dict[str, float]:
        """Those the activation has, by name."""
        given = {name: getattr(self, name) for names in OF_A_GATE.values() for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def activation_problems(self) -> Iterator[Problem]:
        """What the activation lacks, and what it has too much."""
        wanted = OF_A_GATE.get(self.activation, {})
        if wanted and not self.gated:
            yield "activation", f"{self.activation} works on a gate; use gated: true"
        for name, why in wanted.items():
            if getattr(self, name) is None:
                yield name, f"missing: {self.activation} {why}"
        for owner, names in OF_A_GATE.items():
            for name in names:
                if owner != self.activation and getattr(self, name) is not None:
                    yield name, f"belongs to the activation {owner}, not to {self.activation}; leave it out"
