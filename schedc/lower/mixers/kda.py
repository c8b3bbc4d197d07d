"""Kimi Delta Attention: as many key as value heads, every key channel decays by itself, a sigmoid gate."""

from __future__ import annotations

from schedc.ir.program import Attribute, Region
from schedc.lower.graph import StepShape
from schedc.lower.mixers.delta_rule import DeltaRuleLowering, Rule
from schedc.lower.parts import Place
from schedc.placement.heads import delta_split
from schedc.spec.mixers.kda import Decay, Kda
from schedc.spec.model import ModelSpec


class KdaLowering(DeltaRuleLowering):
    def __init__(
        self, kda: Kda, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        split = delta_split(kda, shape.devices, shape.placement)
        rule = Rule(split, "keys", _decay(kda.decay), "sigmoid", kda.decay_rank, kda.gate_rank)
        super().__init__(kda, rule, spec, shape, place, source)


def _decay(decay: Decay) -> dict[str, Attribute]:
    bound: dict[str, Attribute] = {"bound": decay.bound} if decay.kind == "scaled_sigmoid" else {}
    return {"kind": decay.kind, **bound}
