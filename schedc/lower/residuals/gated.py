"""The residual with two learned factors a channel: x = α ⊙ x + β ⊙ f(x)."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.ir.program import Attribute, Region
from schedc.lower.graph import Site, StepShape
from schedc.lower.residuals.stream import StreamLowering
from schedc.spec.model import Half, ModelSpec
from schedc.spec.residuals.gated import GatedResidual


class GatedLowering(StreamLowering):
    def __init__(self, residual: GatedResidual, spec: ModelSpec, shape: StepShape) -> None:
        super().__init__(spec, shape)
        self.residual = residual

    def joining(self, half: Half, site: Site) -> tuple[Mapping[str, Region], Mapping[str, Attribute]]:
        gate = {"gate": site.vector(f"{half}_residual.gate")}
        return gate, {"temperature": self.residual.temperature, "floor": self.residual.floor}
