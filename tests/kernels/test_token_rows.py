"""Rows that are consecutive tokens of one sequence, against the reference's logits at every position."""

from __future__ import annotations

import pytest

from schedc.compiler.telling_steps import telling_steps
from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.recurrent_specs import FEATURES
from tests.reference.small_specs import LATENT, small_spec

pytestmark = pytest.mark.kernel

CONTEXT = 60
WINDOW = small_spec(mixer={"kv_heads": 1, "window": 20})
CHUNKS = small_spec(mixer={"chunk": 20, "temperature": {"scale": 0.5, "interval": 8}})
LATENTS = LATENT["latent, output gate"]


def tokens(rows: int) -> StepShape:
    return StepShape(rows, CONTEXT, logits=True, rows_are="tokens")


def agrees(spec: ModelSpec, shape: StepShape, mode: Mode, every: int = 1) -> None:
    """At the borders of tiles, the window and the context, with inactive rows, and after tokens were not accepted."""
    built = build_kernel(spec, shape, small_tiles("ring"))
    beside = trial(built, spec, shape, mode)
    for positions, active in telling_steps(spec, shape, built.schedule.plan.kv_tokens)[::every]:
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == [], (positions, active)
        assert not raced


slow = pytest.mark.slow


@pytest.mark.parametrize("mode", [pytest.param("eager", marks=slow), "on_wait"])
def test_eight_tokens_see_what_is_before_each(mode: Mode) -> None:
    agrees(in_format(WINDOW, "f32"), tokens(8), mode)


@slow
@pytest.mark.parametrize("rows", [1, 3, 16])
def test_one_to_sixteen_tokens(rows: int) -> None:
    agrees(in_format(WINDOW, "f32"), tokens(rows), "on_wait")


@pytest.mark.parametrize("mode", [pytest.param("eager", marks=slow), "on_wait"])
def test_tokens_attend_to_latents(mode: Mode) -> None:
    agrees(in_format(LATENTS, "f32"), tokens(8), mode, every=3)


@slow
def test_every_row_has_its_own_chunk_and_temperature() -> None:
    agrees(in_format(CHUNKS, "f32"), tokens(8), "eager")


@slow
@pytest.mark.parametrize(
    "kv", [{"dtype": "bf16"}, {"dtype": "fp8"}, {"dtype": "bf16", "layout": "paged", "page_tokens": 16}]
)
def test_caches_of_other_formats_and_pages(kv: dict) -> None:
    spec = ModelSpec.model_validate(in_format(WINDOW, "bf16").model_dump(mode="json") | {"kv": kv})
    agrees(spec, tokens(8), "on_wait", every=2)


def test_tokens_that_may_be_in_three_pages_are_refused() -> None:
    kv = {"dtype": "f32", "layout": "paged", "page_tokens": 8}
    spec = ModelSpec.model_validate(in_format(WINDOW, "f32").model_dump(mode="json") | {"kv": kv})
    with pytest.raises(SpecError, match=r"kv.page_tokens: 9 tokens .* more than two pages of 8; .* at most 8 rows"):
        build_kernel(spec, tokens(9))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("kda", "on_wait"), pytest.param("gated delta beside attention", "eager", marks=slow)],
)
def test_a_step_goes_on_behind_the_last_token_that_was_accepted(name: str, mode: Mode) -> None:
    """From the beginning; behind three of eight, none, all of six, all of eight; from nothing; from another beginning.

    In all the states go more than once round their ring.
    """
    spec, shape = in_format(FEATURES[name], "f32"), tokens(8)
    beside = trial(build_kernel(spec, shape, small_tiles("ring")), spec, shape, mode)
    for first, count in ((0, 8), (3, 8), (3, 6), (9, 8), (17, 0), (17, 8), (0, 2)):
        active = tuple(row < count for row in range(8))
        outcome, raced = step(beside, tuple(range(first, first + 8)), active)
        assert problems(outcome, spec) == [], (first, count)
        assert not raced
