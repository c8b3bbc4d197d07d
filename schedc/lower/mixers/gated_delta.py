"""The gated delta rule: fewer key than value heads, one decay a value head, a SiLU gate."""

from __future__ import annotations

from schedc.ir.program import Region
from schedc.lower.graph import StepShape
from schedc.lower.mixers.delta_rule import DeltaRuleLowering, Rule
from schedc.lower.parts import Place
from schedc.placement.heads import delta_split
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.model import ModelSpec


class GatedDeltaLowering(DeltaRuleLowering):
    def __init__(
        self, mixer: GatedDelta, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        split = delta_split(mixer, shape.devices, shape.placement)
        super().__init__(mixer, Rule(split, "heads", {"kind": "softplus"}, "silu"), spec, shape, place, source)
