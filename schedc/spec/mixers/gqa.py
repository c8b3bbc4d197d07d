"""Grouped-query attention; multi-head (kv_heads = heads) and multi-query (kv_heads = 1) are its ends."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.spec.norm import Norm
from schedc.spec.rope import Rope


class GqaBias(Part):
    """Which of the four projections add a bias."""

    q: bool = False
    k: bool = False
    v: bool = False
    o: bool = False


class Gqa(Part):
    """q, k, v = x·Wq + bq, x·Wk + bk, x·Wv + bv; q, k = rope(norm(q)), rope(norm(k)) per head;

    s = cap·tanh(scale·q·kᵀ / cap) over the keys in sight (without `soft_cap`: s = scale·q·kᵀ);
    out = softmax(s)·v·Wo + bo. Query head h reads kv head h // (heads / kv_heads).
    `window` w: position p sees the keys p - w + 1 … p, itself included; None: all of 0 … p.
    """

    kind: Literal["gqa"]
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    scale: float | None = Field(default=None, gt=0, description="None: head_dim ** -0.5")
    rope: Rope | None = None
    qk_norm: Norm | None = Field(default=None, description="over head_dim, one weight for all heads, before rope")
    bias: GqaBias = GqaBias()
    window: int | None = Field(default=None, gt=0)
    soft_cap: float | None = Field(default=None, gt=0)

    def problems(self) -> Iterator[Problem]:
        if self.heads % self.kv_heads:
            yield (
                "heads",
                (f"{self.heads} heads do not divide into {self.kv_heads} kv heads; use a multiple of {self.kv_heads}"),
            )
        if self.rope is not None:
            if self.rope.rotary_dim is None and self.head_dim % 2:
                yield "head_dim", f"rope rotates pairs, and {self.head_dim} is odd; set an even rope.rotary_dim"
            if self.rope.rotary_dim is not None and self.rope.rotary_dim > self.head_dim:
                yield (
                    "rope.rotary_dim",
                    (f"{self.rope.rotary_dim} is more than head_dim {self.head_dim}; use {self.head_dim} or less"),
                )

    @property
    def score_scale(self) -> float:
        """What q·kᵀ is multiplied by before the soft cap and the softmax."""
        return self.head_dim**-0.5 if self.scale is None else self.scale

    @property
    def rotary_dim(self) -> int:
        """How many leading dimensions of each head are rotated; 0 without rope."""
        if self.rope is None:
            return 0
        return self.head_dim if self.rope.rotary_dim is None else self.rope.rotary_dim

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection."""
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in (
            ("q", (hidden, q_width)),
            ("k", (hidden, kv_width)),
            ("v", (hidden, kv_width)),
            ("o", (q_width, hidden)),
        ):
            shapes[name] = shape
            if getattr(self.bias, name):
                shapes[f"{name}_bias"] = shape[1:]
        if self.qk_norm is not None:
            for side in ("q_norm", "k_norm"):
                shapes |= {f"{side}_{name}": shape for name, shape in self.qk_norm.parameters(self.head_dim).items()}
        return shapes
