"""Grouped-query attention; multi-head (kv_heads = heads) and multi-query (kv_heads = 1) are its ends."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.spec.norm import Norm
from schedc.spec.rope import Rope, scaling_problem


class GqaBias(Part):
    """Which of the four projections add a bias."""

    q: bool = False
    k: bool = False
    v: bool = False
    o: bool = False


class Temperature(Part):
    """Queries of later positions p are scaled by 1 + scale·ln(1 + floor((p + 1) / interval)) (arXiv 2501.19399)."""

    scale: float = Field(gt=0)
    interval: int = Field(gt=0)


class Gqa(Part):
    """q, k, v = x·Wq + bq, x·Wk + bk, x·Wv + bv; q, k = rope(norm(q)), rope(norm(k)) per head;

    s = cap·tanh(scale·q·kᵀ / cap) over the keys in sight (without `soft_cap`: s = scale·q·kᵀ);
    out = softmax(s)·v·Wo + bo. Query head h reads kv head h // (heads / kv_heads).
    `window` w: position p sees the keys p - w + 1 … p, itself included; None: all of 0 … p.
    `chunk` c: position p sees the keys of its own chunk, c·(p // c) … p (Llama 4).
    `sinks`: a learned logit a head joins the softmax's denominator, and takes no value (gpt-oss).
    `output_norm` (per head) and then `output_gate`, o ⊙ sigmoid(x·Wgate), come before Wo.
    """

    kind: Literal["gqa"]
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    scale: float | None = Field(default=None, gt=0, description="None: head_dim ** -0.5")
    rope: Rope | None = None
    qk_norm: Norm | None = Field(default=None, description="over `qk_norm_over`, before rope")
    qk_norm_over: Literal["head", "heads"] = Field(
        default="head", description="head: over head_dim, one weight for all heads; heads: over all heads jointly"
    )
    qk_norm_after_rope: bool = False
    sinks: bool = False
    output_norm: Norm | None = Field(default=None, description="over head_dim, one weight for all heads")
    output_gate: bool = False
    bias: GqaBias = GqaBias()
    window: int | None = Field(default=None, gt=0)
    chunk: int | None = Field(default=None, gt=0)
    temperature: Temperature | None = None
    soft_cap: float | None = Field(default=None, gt=0)

    def problems(self) -> Iterator[Problem]:
        if self.heads % self.kv_heads:
            yield (
                "heads",
                (f"{self.heads} heads do not divide into {self.kv_heads} kv heads; use a multiple of {self.kv_heads}"),
            )
        if self.qk_norm is None:
            for name, given in (
                ("qk_norm_over", self.qk_norm_over != "head"),
                ("qk_norm_after_rope", self.qk_norm_after_rope),
            ):
                if given:
                    yield name, "there is no qk_norm of which it says anything; set qk_norm, or leave it out"
        if self.window is not None and self.chunk is not None:
            yield "chunk", "a mixer has a window or chunks, not both"
        if self.rope is not None:
            if self.rope.rotary_dim is None and self.head_dim % 2:
                yield "head_dim", f"rope rotates pairs, and {self.head_dim} is odd; set an even rope.rotary_dim"
            if self.rope.rotary_dim is not None and self.rope.rotary_dim > self.head_dim:
                yield (
                    "rope.rotary_dim",
                    (f"{self.rope.rotary_dim} is more than head_dim {self.head_dim}; use {self.head_dim} or less"),
                )
            problem = scaling_problem(self.rope, self.rotary_dim)
            if problem is not None:
                yield "rope.scaling.short_factor", problem

    @property
    def rope_width(self) -> int:
        """Dimensions of which the leading `rotary_dim` are rotated."""
        return self.head_dim

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
            joint = self.qk_norm_over == "heads"
            for side, width in (("q_norm", q_width), ("k_norm", kv_width)):
                normed = self.qk_norm.parameters(width if joint else self.head_dim)
                shapes |= {f"{side}_{name}": shape for name, shape in normed.items()}
        if self.sinks:
            shapes["sinks"] = (self.heads,)
        if self.output_norm is not None:
            normed = self.output_norm.parameters(self.head_dim)
            shapes |= {f"output_norm_{name}": shape for name, shape in normed.items()}
        if self.output_gate:
            shapes["gate"] = (hidden, q_width)
        return shapes
