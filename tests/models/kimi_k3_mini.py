"""The scaled-down Kimi K3 of these tests, and its judge."""

from schedc.spec.load import load_spec
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.spec.residuals.block_attention import BlockAttentionResidual
from schedc.weights.source import WeightSource
from tests.models.kimi_k3_checkpoint import checkpoint
from tests.models.kimi_k3_numpy import KimiK3, Sizes


def mini(**quantization: str) -> ModelSpec:
    """With the packaged formats, or others."""
    spec = load_spec("kimi-k3-mini")
    if not quantization:
        return spec
    return ModelSpec.model_validate(
        spec.model_dump(mode="json") | {"quantization": quantization, "kv": {"dtype": "f32"}}
    )


EXACT = {"weights": "f32", "experts": "mxfp4"}
"""Formats that leave nothing to rounding but sums of f32; experts are exact."""


def judge(spec: ModelSpec, source: WeightSource) -> KimiK3:
    """The numpy model of the same weights."""
    delta = next(at.block.mixer for at in spec.iter_layers() if isinstance(at.block.mixer, Kda))
    latent = [at for at in spec.iter_layers() if isinstance(at.block.mixer, Mla)]
    mla = latent[0].block.mixer
    assert isinstance(mla, Mla) and isinstance(spec.residual, BlockAttentionResidual)
    sizes = Sizes(
        layers=spec.num_layers,
        latent_layers=frozenset(at.layer for at in latent),
        delta_heads=delta.heads,
        heads=mla.heads,
        nope_dim=mla.nope_dim,
        rope_dim=mla.rope_dim,
        kv_rank=mla.kv_rank,
        top_k=latent[0].block.feed_forward.top_k,
        block=spec.residual.block,
    )
    return KimiK3(checkpoint(spec, source), sizes)
