"""A dense feed-forward, gated or plain."""

from collections.abc import Iterator
from typing import Literal

from schedc.spec.base import Part, Problem
from schedc.spec.feed_forwards.activation import Activated


class DenseBias(Part):
    """Which of the projections add a bias."""

    up: bool = False
    gate: bool = False
    down: bool = False


class Dense(Activated):
    """Gated: (activation(x·Wgate) ⊙ (x·Wup))·Wdown; plain: activation(x·Wup)·Wdown."""

    kind: Literal["dense"]
    bias: DenseBias = DenseBias()

    def problems(self) -> Iterator[Problem]:
        if self.bias.gate and not self.gated:
            yield "bias.gate", "a plain feed-forward has no gate; use gated: true, or bias.gate: false"
        yield from self.activation_problems()

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
