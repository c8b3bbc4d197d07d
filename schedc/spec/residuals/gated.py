"""A residual with two learned factors a channel."""

from typing import Literal

from pydantic import Field

from schedc.spec.base import Part

MIXER, FEED_FORWARD = "mixer_residual", "feed_forward_residual"
"""Before the names of the weights of a layer's two residuals."""


class GatedResidual(Part):
    """x = α ⊙ x + β ⊙ f(x), two learned vectors a half of every block.

    With the stored weight w of each channel: β = sigmoid(w / temperature) and
    α = sqrt(max(sigmoid(-w / temperature)·(1 + β), floor)) (Muse Spark).
    """

    kind: Literal["gated"]
    temperature: float = Field(default=0.3, gt=0)
    floor: float = Field(default=1e-3, gt=0)

    def layer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights of one layer's residuals, one w for each half of its block."""
        return {f"{half}.gate": (hidden,) for half in (MIXER, FEED_FORWARD)}

    def outer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights outside the layers."""
        return {}
