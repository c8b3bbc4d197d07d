"""The plain residual: x += multiplier · f(x)."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.ir.program import Attribute, Region
from schedc.lower.graph import Site, StepShape
from schedc.lower.residuals.stream import StreamLowering
from schedc.spec.model import Half, ModelSpec
from schedc.spec.residuals.plain import PlainResidual


class PlainLowering(StreamLowering):
    def __init__(self, residual: PlainResidual, spec: ModelSpec, shape: StepShape) -> None:
        super().__init__(spec, shape)
        self.residual = residual

    def joining(self, half: Half, site: Site) -> tuple[Mapping[str, Region], Mapping[str, Attribute]]:
        return {}, {"multiplier": self.residual.multiplier}
