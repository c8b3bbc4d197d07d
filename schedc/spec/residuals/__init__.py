"""Residuals: how outputs of half blocks join the stream x, and what the halves read of it. One kind a file."""

from typing import Annotated

from pydantic import Field

from schedc.spec.residuals.block_attention import BlockAttentionResidual
from schedc.spec.residuals.gated import GatedResidual
from schedc.spec.residuals.plain import PlainResidual

Residual = Annotated[PlainResidual | GatedResidual | BlockAttentionResidual, Field(discriminator="kind")]
