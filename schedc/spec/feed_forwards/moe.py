"""Mixture of experts: a router sends every token to a few of many small feed-forwards."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem
from schedc.spec.feed_forwards.activation import Activated
from schedc.spec.feed_forwards.dense import Dense, DenseBias
from schedc.spec.feed_forwards.router import Router
from schedc.spec.norm import Norm


class Latent(Part):
    """The experts work in a narrower space: y = norm_in(x·Win); out = norm_out(Σ)·Wout."""

    width: int = Field(gt=0)
    norm_in: Norm | None = None
    norm_out: Norm | None = None


class Moe(Activated):
    """Σ over the chosen experts e of w_e · f_e(x), plus `shared`(x), times sigmoid(x·Wsg) with a `shared_gate`.

    f_e is a feed-forward as in `Dense`, of `width`, with an `expert_norm` of its output before it is weighted, one
    weight for all experts. With `weigh_input` f_e(w_e · x) stands in the place of w_e · f_e(x). With a `latent` x is
    the latent's input for the experts; the router and the shared feed-forward read the full width.
    """

    kind: Literal["moe"]
    experts: int = Field(gt=1)
    top_k: int = Field(gt=0)
    router: Router
    gated: bool = True
    bias: DenseBias = DenseBias()
    weigh_input: bool = False
    expert_norm: Norm | None = None
    latent: Latent | None = None
    shared: Dense | None = None
    shared_gate: bool = False

    def problems(self) -> Iterator[Problem]:
        if self.top_k > self.experts:
            yield "top_k", f"{self.top_k} of {self.experts} experts cannot be chosen; use {self.experts} or less"
        groups, kept = self.router.groups, self.router.groups_kept
        if self.experts % groups:
            yield "router.groups", f"{self.experts} experts do not divide into {groups} groups; use a divisor"
        elif self.experts >= self.top_k > self.experts // groups * kept:
            yield (
                "top_k",
                f"{self.top_k} experts cannot be chosen from {kept} of {groups} groups of {self.experts // groups}; "
                f"use {self.experts // groups * kept} or less, or keep more groups",
            )
        if self.shared_gate and self.shared is None:
            yield "shared_gate", "there is no shared feed-forward to gate; set shared, or shared_gate: false"
        if self.bias.gate and not self.gated:
            yield "bias.gate", "a plain feed-forward has no gate; use gated: true, or bias.gate: false"
        yield from self.activation_problems()

    @property
    def input_width(self) -> int | None:
        """Width of an expert's input and output; None: that of the model."""
        return None if self.latent is None else self.latent.width

    @property
    def expert(self) -> Dense:
        """One of the experts."""
        return Dense(
            kind="dense",
            width=self.width,
            gated=self.gated,
            activation=self.activation,
            **self.parameters_of_activation,
            bias=self.bias,
        )

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights, [in, out] for a projection, [experts, in, out] for one of every expert."""
        inner = self.input_width or hidden
        shapes: dict[str, tuple[int, ...]] = {"router": (hidden, self.experts)}
        for name, present in (("router_bias", self.router.bias), ("selection_bias", self.router.selection_bias)):
            if present:
                shapes[name] = (self.experts,)
        if self.latent is not None:
            shapes["latent_in"] = (hidden, inner)
            for side, norm in (("in", self.latent.norm_in), ("out", self.latent.norm_out)):
                if norm is not None:
                    shapes |= {f"latent_norm_{side}_{name}": s for name, s in norm.parameters(inner).items()}
            shapes["latent_out"] = (inner, hidden)
        shapes |= {f"experts.{name}": (self.experts, *shape) for name, shape in self.expert.parameters(inner).items()}
        if self.expert_norm is not None:
            shapes |= {f"expert_norm_{name}": shape for name, shape in self.expert_norm.parameters(inner).items()}
        if self.shared is not None:
            shapes |= {f"shared.{name}": shape for name, shape in self.shared.parameters(hidden).items()}
            if self.shared_gate:
                shapes["shared_gate"] = (hidden, 1)
        return shapes
