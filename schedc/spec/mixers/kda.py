"""Kimi Delta Attention: a delta rule with a decay of every key channel (arXiv 2510.26692)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from schedc.spec.base import Part
from schedc.spec.norm import Norm


class ScaledSigmoidDecay(Part):
    """g = -bound · sigmoid(exp(A)·(f + dt)) (Kimi K3)."""

    kind: Literal["scaled_sigmoid"]
    bound: float = Field(gt=0)


class SoftplusDecay(Part):
    """g = -exp(A) · softplus(f + dt) (Kimi-Linear)."""

    kind: Literal["softplus"]


Decay = Annotated[ScaledSigmoidDecay | SoftplusDecay, Field(discriminator="kind")]


class Kda(Part):
    """q, k, v = silu(conv(x·Wq)), silu(conv(x·Wk)), silu(conv(x·Wv)), causal depthwise convolutions over the last
    `conv` tokens; per head q, k divided by sqrt(Σ² + qk_eps), q times key_dim^-0.5.

    f = x·Wdecay_a·Wdecay_b; log-decay g of every key channel as `decay` says, A of a head, dt of a channel;
    beta = sigmoid(x·Wbeta) of a head. With the state S f32[value_dim, key_dim] of a head:
    S = S·diag(exp g); S += beta·(v - S·k)·kᵀ; o = S·q.
    out = (norm(o) ⊙ sigmoid(z))·Wo, z = x·Wgate, or x·Wgate_a·Wgate_b with a `gate_rank`.
    The state and the last conv - 1 inputs of the convolutions, both f32, are all that is kept of earlier tokens.
    """

    kind: Literal["kda"]
    heads: int = Field(gt=0)
    key_dim: int = Field(gt=0)
    value_dim: int = Field(gt=0)
    conv: int = Field(gt=1, le=8, description="tokens that a convolution sees, the newest included")
    decay: Decay
    decay_rank: int = Field(gt=0)
    gate_rank: int | None = Field(default=None, gt=0, description="None: projected at once")
    output_norm: Norm
    qk_eps: float = Field(default=1e-6, gt=0)

    rope: ClassVar[None] = None
    rope_width: ClassVar[int] = 0
    rotary_dim: ClassVar[int] = 0

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection, [channels, conv] for a convolution."""
        keys, values = self.heads * self.key_dim, self.heads * self.value_dim
        shapes: dict[str, tuple[int, ...]] = {"q": (hidden, keys), "k": (hidden, keys), "v": (hidden, values)}
        shapes |= {"q_conv": (keys, self.conv), "k_conv": (keys, self.conv), "v_conv": (values, self.conv)}
        shapes |= {"decay_a": (hidden, self.decay_rank), "decay_b": (self.decay_rank, keys)}
        shapes |= {"decay_bias": (keys,), "decay_scale": (self.heads,), "beta": (hidden, self.heads)}
        if self.gate_rank is None:
            shapes["gate"] = (hidden, values)
        else:
            shapes |= {"gate_a": (hidden, self.gate_rank), "gate_b": (self.gate_rank, values)}
        shapes |= {f"output_norm_{name}": shape for name, shape in self.output_norm.parameters(self.value_dim).items()}
        return shapes | {"o": (values, hidden)}
