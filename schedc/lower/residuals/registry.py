"""Which lowering stands for which kind of residual."""

from schedc.lower.graph import StepShape
from schedc.lower.residuals.block_attention import BlockAttentionLowering
from schedc.lower.residuals.gated import GatedLowering
from schedc.lower.residuals.plain import PlainLowering
from schedc.lower.residuals.protocol import ResidualLowering
from schedc.spec.model import ModelSpec

RESIDUALS = {"plain": PlainLowering, "gated": GatedLowering, "block_attention": BlockAttentionLowering}


def lower_residual(spec: ModelSpec, shape: StepShape) -> ResidualLowering:
    return RESIDUALS[spec.residual.kind](spec.residual, spec, shape)
