"""Every weight has a name, a shape as checkpoints have it, and a family if it is a projection."""

import pytest

from schedc.spec.model import ModelSpec
from schedc.weights.source import expected_shapes, family_of

RMS = {"kind": "rms", "eps": 1e-5}
KDA = {
    "kind": "kda", "heads": 3, "key_dim": 8, "value_dim": 6, "conv": 4, "decay": {"kind": "softplus"},
    "decay_rank": 5, "gate_rank": 7, "output_norm": RMS,
}  # fmt: skip


def with_state() -> ModelSpec:
    """A layer of Kimi Delta Attention between block attention residuals."""
    feed_forward = {"kind": "dense", "width": 40, "gated": True, "activation": "silu"}
    return ModelSpec.model_validate(
        {
            "name": "small",
            "hidden": 24,
            "vocab": 50,
            "max_position": 64,
            "embedding": {"tied": True},
            "layers": [{"repeat": 1, "pattern": [{"mixer": KDA, "feed_forward": feed_forward, "norm": RMS}]}],
            "final_norm": RMS,
            "residual": {"kind": "block_attention", "block": 2, "eps": 1e-5},
        }
    )


def test_projections_are_outputs_by_inputs_and_convolutions_channels_by_tokens() -> None:
    shapes = expected_shapes(with_state())
    assert shapes["layers.0.attn.q"] == (24, 24)
    assert shapes["layers.0.attn.v"] == (18, 24)
    assert shapes["layers.0.attn.v_conv"] == (18, 4)
    assert (shapes["layers.0.attn.decay_a"], shapes["layers.0.attn.decay_b"]) == ((5, 24), (24, 5))
    assert shapes["layers.0.attn.output_norm"] == (6,)
    assert shapes["layers.0.mixer_residual.query"] == shapes["final_residual.norm"] == (24,)


@pytest.mark.parametrize(
    ("family", "weights"),
    [
        ("attention", "attn.q attn.gate attn.gate_a attn.kv_b attn.o"),
        ("decay", "attn.decay attn.decay_a attn.decay_b attn.beta"),
        ("dense", "mlp.gate mlp.down mlp.latent_in"),
        ("experts", "mlp.experts.3.up"),
        ("shared", "mlp.shared.up mlp.shared_gate"),
        ("router", "mlp.router"),
        (None, "attn.q_conv attn.decay_bias attn.decay_scale attn.q_a_norm attn.output_norm attn.sinks"),
        (None, "mlp.latent_norm_out_weight mlp.selection_bias mlp.experts.3.up_bias"),
        (None, "pre_mixer_norm.weight mixer_residual.query feed_forward_residual.norm mixer_residual.gate"),
    ],
)
def test_a_projection_belongs_to_a_family_and_nothing_else_does(family: str | None, weights: str) -> None:
    assert {family_of(f"layers.12.{weight}") for weight in weights.split()} == {family}


def test_outside_the_layers_only_the_head_is_a_projection() -> None:
    assert family_of("head") == "head"
    assert {family_of(name) for name in ("embed", "head_bias", "final_norm.weight", "final_residual.query")} == {None}
