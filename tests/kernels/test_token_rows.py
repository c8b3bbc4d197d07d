"""Rows that are consecutive tokens of one sequence, against the reference's logits at every position."""

from __future__ import annotations

import pytest

from schedc.compiler.trial import problems, telling_steps
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.small_specs import LATENT, small_spec

pytestmark = pytest.mark.kernel

CONTEXT = 60
GQA = in_format(small_spec(mixer={"kv_heads": 1, "window": 20}), "f32")


def tokens(rows: int) -> StepShape:
    return StepShape(rows, CONTEXT, logits=True, rows_are="tokens")


def agrees(spec: ModelSpec, shape: StepShape, mode: Mode, every: int = 1) -> None:
    built = build_kernel(spec, shape, small_tiles("ring"))
    beside = trial(built, spec, shape, mode)
    for positions, active in telling_steps(spec, shape, built.schedule.plan.kv_tokens)[::every]:
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == [], (positions, active)
        assert not raced


@pytest.mark.parametrize("mode", ["eager", "on_wait"])
def test_eight_tokens_see_the_same_as_one_by_one(mode: Mode) -> None:
    agrees(GQA, tokens(8), mode)


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_rows(rows: int) -> None:
    agrees(GQA, tokens(rows), "on_wait")


@pytest.mark.parametrize("mode", ["eager", "on_wait"])
def test_latent(mode: Mode) -> None:
    agrees(in_format(LATENT["latent, output gate"], "f32"), tokens(8), mode)
