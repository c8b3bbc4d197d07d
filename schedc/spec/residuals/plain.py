"""The plain residual."""

from typing import Literal

from pydantic import Field

from schedc.spec.base import Part


class PlainResidual(Part):
    """x += multiplier · f(x)."""

    kind: Literal["plain"] = "plain"
    multiplier: float = Field(default=1.0, gt=0)

    def layer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights of one layer's residuals."""
        return {}

    def outer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights outside the layers."""
        return {}
