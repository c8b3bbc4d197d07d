"""Small specs with mixers that keep a state, and with block attention residuals."""

from typing import Any

from schedc.spec.model import ModelSpec
from tests.reference.moe_specs import SITU
from tests.reference.small_specs import RMS, small_spec

SIGMOID = {"kind": "scaled_sigmoid", "bound": 5.0}
KDA = {
    "kind": "kda", "heads": 3, "key_dim": 8, "value_dim": 6, "conv": 4, "decay": SIGMOID, "decay_rank": 5,
    "output_norm": RMS,
}  # fmt: skip
GATED_DELTA = {
    "kind": "gated_delta", "key_heads": 2, "value_heads": 6, "key_dim": 8, "value_dim": 5, "conv": 3,
    "output_norm": RMS,
}  # fmt: skip


def block(mixer: dict[str, Any] | None = None, **feed_forward: Any) -> dict[str, Any]:
    """A block with this mixer in the place of attention."""
    own = small_spec(feed_forward=feed_forward).model_dump(mode="json", exclude_none=True)["layers"][0]["pattern"][0]
    return own if mixer is None else own | {"mixer": mixer}


def alike(mixer: dict[str, Any], **changes: Any) -> ModelSpec:
    """Three equal layers with this mixer."""
    return small_spec(layers=[{"repeat": 3, "pattern": [block(mixer | changes)]}])


def blocks_of(size: int, **model: Any) -> ModelSpec:
    """Seven layers in two runs, patterns of one and of three, between block attention residuals."""
    runs = [{"repeat": 1, "pattern": [block()]}, {"repeat": 2, "pattern": [block(KDA), block(KDA), block(**SITU)]}]
    return small_spec(layers=runs, residual={"kind": "block_attention", "block": size, "eps": 1e-5}, **model)


FEATURES: dict[str, ModelSpec] = {
    "kda": alike(KDA),
    "kda, softplus": alike(KDA, decay={"kind": "softplus"}, gate_rank=7, qk_eps=0.5),
    "kda, short convolution": alike(KDA, conv=2),
    "gated delta": alike(GATED_DELTA),
    "gated delta, equal heads": alike(GATED_DELTA, key_heads=6, qk_eps=0.5),
    "gated delta beside attention": small_spec(
        layers=[{"repeat": 2, "pattern": [block(GATED_DELTA), block(GATED_DELTA), block()]}]
    ),
    "situ": small_spec(feed_forward=SITU),
    "blocks of one": blocks_of(1),
    "blocks of two": blocks_of(2),
    "blocks that end with the model": blocks_of(7),
    "blocks longer than the model": blocks_of(12),
}
