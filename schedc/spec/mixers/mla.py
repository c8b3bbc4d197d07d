"""Multi-head latent attention: keys and values of all heads are projections of one cached latent (DeepSeek-V2)."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.spec.norm import Norm
from schedc.spec.rope import Rope, scaling_problem

LatentCache = Literal["absorbed", "expanded"]


class Mla(Part):
    """c = norm(x·Wkva[:, :kv_rank]) and r = rope(x·Wkva[:, kv_rank:]), one shared key of `rope_dim`, are cached;

    [qn | qr] per head = norm(x·Wqa)·Wqb (without `q_rank`: x·Wq), qr = rope(qr); [Kh | Vh] = c·Wkvb per head;
    s = scale·(qn·Khᵀ + qr·rᵀ); out = (softmax(s)·Vh, times sigmoid(x·Wgate) with an `output_gate`)·Wo.
    Without `rope` nothing is rotated. arXiv 2405.04434, section 2.1.

    An `expanded` cache keeps [Kh | r] and Vh of every head instead of c and r, and the same is computed.
    """

    kind: Literal["mla"]
    heads: int = Field(gt=0)
    q_rank: int | None = Field(default=None, gt=0, description="width of the query's latent; None: projected at once")
    kv_rank: int = Field(gt=0)
    nope_dim: int = Field(gt=0)
    rope_dim: int = Field(gt=0)
    value_dim: int = Field(gt=0)
    q_norm: Norm | None = Field(default=None, description="of the query's latent")
    kv_norm: Norm
    rope: Rope | None = None
    scale: float | None = Field(default=None, gt=0, description="None: (nope_dim + rope_dim) ** -0.5")
    output_gate: bool = False
    cache: LatentCache = Field(
        default="absorbed",
        description="absorbed: the latent and the shared key; expanded: keys and values of every head",
    )

    def problems(self) -> Iterator[Problem]:
        if self.q_norm is not None and self.q_rank is None:
            yield "q_norm", "there is no latent of the query to normalise; set q_rank, or leave q_norm out"
        if self.rope is not None and self.rope_dim % 2:
            yield "rope_dim", f"rope rotates pairs, and {self.rope_dim} is odd"
        if self.rope is not None and self.rope.rotary_dim not in (None, self.rope_dim):
            yield "rope.rotary_dim", f"{self.rope.rotary_dim} is not rope_dim {self.rope_dim}; leave it out"
        elif self.rope is not None and (problem := scaling_problem(self.rope, self.rope_dim)) is not None:
            yield "rope.scaling.short_factor", problem

    @property
    def head_dim(self) -> int:
        """Width of a query of one head."""
        return self.nope_dim + self.rope_dim

    @property
    def rotary_dim(self) -> int:
        return 0 if self.rope is None else self.rope_dim

    @property
    def latent_dim(self) -> int:
        """Width of the latent and the shared key: what an absorbed cache keeps of a token."""
        return self.kv_rank + self.rope_dim

    @property
    def rope_width(self) -> int:
        """Dimensions of which the leading `rotary_dim` are rotated."""
        return self.rope_dim

    @property
    def score_scale(self) -> float:
        return self.head_dim**-0.5 if self.scale is None else self.scale

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection; q_b and kv_b hold their parts head by head."""
        q_width = self.heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {}
        if self.q_rank is None:
            shapes["q"] = (hidden, q_width)
        else:
            shapes["q_a"] = (hidden, self.q_rank)
            if self.q_norm is not None:
                shapes |= {f"q_a_norm_{name}": shape for name, shape in self.q_norm.parameters(self.q_rank).items()}
            shapes["q_b"] = (self.q_rank, q_width)
        shapes["kv_a"] = (hidden, self.latent_dim)
        shapes |= {f"kv_a_norm_{name}": shape for name, shape in self.kv_norm.parameters(self.kv_rank).items()}
        shapes["kv_b"] = (self.kv_rank, self.heads * (self.nope_dim + self.value_dim))
        if self.output_gate:
            shapes["gate"] = (hidden, self.heads * self.value_dim)
        shapes["o"] = (self.heads * self.value_dim, hidden)
        return shapes
