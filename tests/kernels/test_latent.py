"""Latent attention in generated kernels, which absorb the up-projections, against the reference, which expands them."""

import pytest

from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.small_specs import LATENT, RMS, latent_spec

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=2, context=50, logits=True)
FIRST = {("latent, odd sizes", "on_wait"), ("latent, output gate", "eager")}
"""What all runs of the tests interpret."""


def cases() -> list:
    every = [(name, mode) for name in LATENT for mode in ("eager", "on_wait")]
    return [pytest.param(*case, marks=[] if case in FIRST else [pytest.mark.slow]) for case in every]


@pytest.mark.parametrize(("name", "mode"), cases())
def test_the_absorbed_kernel_agrees_with_the_expanded_reference(name: str, mode: Mode) -> None:
    agrees(in_format(LATENT[name], "f32"), mode)


@pytest.mark.slow
def test_a_bf16_kernel_differs_by_no_more_than_rounding() -> None:
    agrees(in_format(LATENT["latent, output gate"], "bf16"), "eager")


@pytest.mark.parametrize(
    "mode", [pytest.param("eager", marks=pytest.mark.long), pytest.param("on_wait", marks=pytest.mark.slow)]
)
def test_many_heads_are_attended_in_groups_of_sequences(mode: Mode) -> None:
    spec = in_format(latent_spec({"heads": 100}), "f32")
    assert any(b.name == "q_group" for b in build_kernel(spec, SHAPE, small_tiles("ring")).program.buffers)
    agrees(spec, mode)


def test_a_norm_of_latents_that_scales_first_is_refused() -> None:
    spec = latent_spec({"kv_norm": RMS | {"scale_first": True}})
    with pytest.raises(SpecError, match=r"mixer.kv_norm.scale_first: a norm that scales first is not supported"):
        build_kernel(spec, SHAPE)


def agrees(spec: ModelSpec, mode: Mode) -> None:
    built = build_kernel(spec, SHAPE, small_tiles("ring"))
    beside = trial(built, spec, SHAPE, mode)
    for positions in ((0, 47), (17, 32)):
        outcome, raced = step(beside, positions)
        assert problems(outcome, spec) == []
        assert not raced
