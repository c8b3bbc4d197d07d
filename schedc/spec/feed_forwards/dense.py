"""A dense feed-forward, gated or plain."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem

ACTIVATIONS = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2", "swiglu_clamped"]


def activation_problems(activation: str, gated: bool, limit: float | None) -> Iterator[Problem]:
    """What `swiglu_clamped` lacks, and what another activation has too much."""
    if activation == "swiglu_clamped":
        if not gated:
            yield "activation", "swiglu_clamped works on a gate; use gated: true"
        if limit is None:
            yield "limit", "missing: swiglu_clamped clamps at it, as in limit: 7.0"
    elif limit is not None:
        yield "limit", f"belongs to the activation swiglu_clamped, not to {activation}; leave it out"


class DenseBias(Part):
    """Which of the projections add a bias."""

    up: bool = False
    gate: bool = False
    down: bool = False


class Dense(Part):
    """Gated: (activation(x·Wgate) ⊙ (x·Wup))·Wdown; plain: activation(x·Wup)·Wdown.

    `gelu` is the exact form x·Φ(x), `gelu_tanh` its tanh approximation, `relu2` is relu(x)².
    `swiglu_clamped` (gated): with g = min(gate, limit) and u = clip(up, -limit, limit), g·sigmoid(1.702·g)·(u + 1).
    """

    kind: Literal["dense"]
    width: int = Field(gt=0)
    gated: bool
    activation: ACTIVATIONS
    limit: float | None = Field(default=None, gt=0, description="of swiglu_clamped")
    bias: DenseBias = DenseBias()

    def problems(self) -> Iterator[Problem]:
        if self.bias.gate and not self.gated:
            yield "bias.gate", "a plain feed-forward has no gate; use gated: true, or bias.gate: false"
        yield from activation_problems(self.activation, self.gated, self.limit)

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection."""
        shapes: dict[str, tuple[int, ...]] = {}
        if self.gated:
            shapes["gate"] = (hidden, self.width)
            if self.bias.gate:
                shapes["gate_bias"] = (self.width,)
        shapes["up"] = (hidden, self.width)
        if self.bias.up:
            shapes["up_bias"] = (self.width,)
        shapes["down"] = (self.width, hidden)
        if self.bias.down:
            shapes["down_bias"] = (hidden,)
        return shapes
