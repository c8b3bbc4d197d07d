"""Weights in every format in a generated kernel, against the reference with the dequantised weights."""

import pytest

from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, small_tiles, step, trial
from tests.reference import moe_specs
from tests.reference.small_specs import LATENT, small_spec

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=2, context=50, logits=True)
QUANTISED = ("int8", "fp8", "fp8_block128", "int4_g32", "int4_g64", "int4_g128", "mxfp4", "nvfp4")
QUICK = ("int8", "nvfp4")
"""Formats that every run of the tests interprets; the products of the others are tested alone."""


def formats(slow_but: tuple[str, ...]) -> list:
    return [pytest.param(name, marks=[] if name in slow_but else [pytest.mark.slow]) for name in QUANTISED]


def stored(spec: ModelSpec, weights: str, arithmetic: str, **families: str) -> ModelSpec:
    """Projections in `weights`, computed in `arithmetic`; what is not quantised, and the cache, are stored in that."""
    plain = dict.fromkeys(("embedding", "head", "router"), arithmetic)
    quantization = {"weights": weights, "arithmetic": arithmetic, **plain, **families}
    changed = {"quantization": quantization, "kv": {"dtype": arithmetic}}
    return ModelSpec.model_validate(spec.model_dump(mode="json") | changed)


def agrees(spec: ModelSpec, mode: Mode) -> None:
    built = build_kernel(spec, SHAPE, small_tiles("ring"))
    beside = trial(built, spec, SHAPE, mode)
    for positions, active in (((0, 47), (True, True)), ((17, 32), (False, True))):
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == []
        assert not raced


@pytest.mark.parametrize("weights", formats(QUICK))
def test_f32_rows_agree_with_the_dequantised_weights(weights: str) -> None:
    agrees(stored(small_spec(), weights, "f32"), "eager")


@pytest.mark.parametrize("weights", formats(("mxfp4",)))
def test_bf16_rows_agree_within_what_bf16_costs_the_reference(weights: str) -> None:
    agrees(stored(small_spec(), weights, "bf16"), "on_wait")


def test_families_have_formats_of_their_own() -> None:
    """Experts in mxfp4, of two dense layers and one with experts, an untied head in int4."""
    spec = stored(moe_specs.FEATURES["dense first"], "mxfp4", "f32", attention="int8", dense="fp8")
    untied = spec.model_copy(update={"embedding": spec.embedding.model_copy(update={"tied": False})})
    agrees(stored(untied, "mxfp4", "f32", attention="int8", dense="fp8", head="int4_g32"), "on_wait")


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["fp8_block128", "int4_g32", "nvfp4"])
def test_latent_attention_takes_quantised_weights_also_head_by_head(weights: str) -> None:
    agrees(stored(LATENT["latent, odd sizes"], weights, "f32"), "on_wait")
