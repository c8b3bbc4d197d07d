"""Small specs with the features of mixtures of experts."""

from typing import Any

from schedc.spec.model import ModelSpec
from tests.reference.small_specs import RMS, small_spec

SOFTMAX = {"score": "softmax", "renormalise": True}
SIGMOID = {"score": "sigmoid", "selection_bias": True, "renormalise": True, "epsilon": 1e-20, "scale": 2.5}
SITU = {"activation": "situ", "beta": 0.5, "linear_beta": 0.8}
SHARED = {"kind": "dense", "width": 40, "gated": True, "activation": "silu"}


def small_moe(router: dict[str, Any] | None = None, **moe: Any) -> ModelSpec:
    """Two layers of 6 experts, 40 wide, of which a token takes 2; the arguments change or add keys."""
    return small_spec(layers=[{"repeat": 2, "pattern": [moe_block(router, **moe)]}])


def moe_block(router: dict[str, Any] | None = None, **moe: Any) -> dict[str, Any]:
    block = small_spec().model_dump(mode="json")["layers"][0]["pattern"][0]
    default = {"kind": "moe", "experts": 6, "top_k": 2, "width": 40, "activation": "silu"}
    return block | {"feed_forward": default | {"router": SOFTMAX | (router or {})} | moe}


def dense_first() -> ModelSpec:
    """A dense layer, then two trips of a pattern of a dense layer and one with experts."""
    dense = small_spec().model_dump(mode="json")["layers"][0]["pattern"][0]
    pattern = [dense, moe_block(shared=SHARED)]
    return small_spec(layers=[{"repeat": 1, "pattern": [dense]}, {"repeat": 2, "pattern": pattern}])


FEATURES: dict[str, ModelSpec] = {
    "softmax": small_moe(),
    "softmax of chosen": small_moe({"score": "softmax_of_chosen", "renormalise": False, "bias": True}),
    "weights as they are": small_moe({"renormalise": False, "logit_multiplier": 0.5}),
    "sigmoid": small_moe(SIGMOID),
    "groups": small_moe(SIGMOID | {"groups": 4, "groups_kept": 2}, experts=16, top_k=3),
    "groups by their best": small_moe({"groups": 3, "groups_kept": 1, "group_score": "max"}),
    "shared": small_moe(shared=SHARED),
    "gated shared": small_moe(shared=SHARED, shared_gate=True),
    "plain experts": small_moe(gated=False, activation="relu2"),
    "clamped": small_moe(activation="swiglu_clamped", limit=0.7, bias={"gate": True, "up": True, "down": True}),
    "situ": small_moe(**SITU, shared=SHARED | SITU),
    "weighed input": small_moe(weigh_input=True),
    "latent": small_moe(SIGMOID, latent={"width": 16, "norm_in": RMS, "norm_out": RMS}, expert_norm=RMS, shared=SHARED),
    "many experts": small_moe(experts=150, top_k=9),
    "dense first": dense_first(),
}
