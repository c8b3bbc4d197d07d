"""Block attention residuals: every half reads a mixture of the sums of earlier blocks of layers (Kimi K3)."""

from typing import Literal

from pydantic import Field

from schedc.spec.base import Part
from schedc.spec.residuals.gated import FEED_FORWARD, MIXER

FINAL = "final_residual"
"""Before the names of the weights of the mixture that the final norm reads."""


class BlockAttentionResidual(Part):
    """A half reads mix(B, P) in the place of the stream; B are the sums of the blocks before, P that of this block.

    mix over the sources v = B_0, …, B_{n-1}, P: score_j = Σ_d norm_d · query_d · v_{j,d} / sqrt(mean(v_j²) + eps),
    α = softmax(score), Σ_j α_j · v_j, in f32. Every mixture has `norm` and `query` of its own.
    At the layers l with l mod `block` = 0, P is appended to B after the mixer's mixture, and the mixer's output is the
    first of the new P; every other output is added to P. At the start P is the embedding and B is empty, so the first
    layer reads the embedding itself. The final norm reads one more mixture.
    """

    kind: Literal["block_attention"]
    block: int = Field(gt=0, description="layers of a block")
    eps: float = Field(gt=0)

    def layer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights of one layer's residuals."""
        return {f"{half}.{name}": (hidden,) for half in (MIXER, FEED_FORWARD) for name in ("norm", "query")}

    def outer_parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights outside the layers."""
        return {f"{FINAL}.{name}": (hidden,) for name in ("norm", "query")}

    def sources(self, layers: int) -> int:
        """Sums of blocks that are stored in all, of a model of so many layers."""
        return -(-layers // self.block)
