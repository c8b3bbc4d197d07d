"""Gated delta rule: one decay a head, fewer key than value heads (Qwen3-Next; arXiv 2412.06464)."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.spec.norm import Norm


class GatedDelta(Part):
    """As `Kda`, but the log-decay g = -exp(A)·softplus(x·Wdecay + dt) is one number of a value head.

    Value head h reads key head h // (value_heads / key_heads). out = (norm(o) ⊙ silu(x·Wgate))·Wo.
    """

    kind: Literal["gated_delta"]
    key_heads: int = Field(gt=0)
    value_heads: int = Field(gt=0)
    key_dim: int = Field(gt=0)
    value_dim: int = Field(gt=0)
    conv: int = Field(gt=1, le=8, description="tokens that a convolution sees, the newest included")
    output_norm: Norm
    qk_eps: float = Field(default=1e-6, gt=0)

    rope: ClassVar[None] = None
    rope_width: ClassVar[int] = 0
    rotary_dim: ClassVar[int] = 0

    def problems(self) -> Iterator[Problem]:
        if self.value_heads % self.key_heads:
            yield (
                "value_heads",
                f"{self.value_heads} value heads do not divide into {self.key_heads} key heads; "
                f"use a multiple of {self.key_heads}",
            )

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection, [channels, conv] for a convolution."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        shapes: dict[str, tuple[int, ...]] = {"q": (hidden, keys), "k": (hidden, keys), "v": (hidden, values)}
        shapes |= {"q_conv": (keys, self.conv), "k_conv": (keys, self.conv), "v_conv": (values, self.conv)}
        shapes |= {"decay": (hidden, self.value_heads), "beta": (hidden, self.value_heads)}
        shapes |= {"decay_bias": (self.value_heads,), "decay_scale": (self.value_heads,), "gate": (hidden, values)}
        shapes |= {f"output_norm_{name}": shape for name, shape in self.output_norm.parameters(self.value_dim).items()}
        return shapes | {"o": (values, hidden)}
