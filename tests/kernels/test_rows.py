"""Rows of one step do not know of each other."""

import numpy as np
import pytest

from schedc.compiler.trial import Trial, problems
from schedc.lower.graph import StepShape
from tests.kernels.built import build_kernel, in_format, small_tiles, step, trial
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(small_spec(mixer={"kv_heads": 1, "window": 20}), "f32")
CONTEXT = 50
POSITIONS = (0, 15, 16, 49, 31, 32, 47, 48, 1, 14, 17, 20, 21, 36, 37, 5)
"""First and last of the cache's tiles of 16 tokens, before and after the window is full."""


@pytest.fixture(scope="module")
def alone() -> Trial:
    shape = StepShape(1, CONTEXT, logits=True)
    return trial(build_kernel(SPEC, shape, small_tiles("ring")), SPEC, shape, "eager")


def test_a_single_row_agrees_with_the_reference_and_may_be_inactive(alone: Trial) -> None:
    for position, active in ((33, True), (34, False), (34, True)):
        outcome, raced = step(alone, (position,), (active,))
        assert problems(outcome, SPEC) == []
        assert not raced


@pytest.mark.parametrize("rows", [pytest.param(3, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow), 16])
def test_a_row_says_the_same_as_when_it_is_run_alone(alone: Trial, rows: int) -> None:
    shape = StepShape(rows, CONTEXT, logits=True)
    together = trial(build_kernel(SPEC, shape, small_tiles("ring")), SPEC, shape, "on_wait")
    state = together.state
    active = tuple(row % 3 != 1 for row in range(rows))

    outcome, raced = step(together, POSITIONS[:rows], active)

    assert problems(outcome, SPEC) == []  # Among them: an inactive row has id -1 and its cache is untouched.
    assert not raced
    for row in [row for row in range(rows) if active[row]][-4:]:
        alone.decoder.fill(0, [tuple(side[row] for side in kept) for kept in state])
        answer = alone.decoder.step(outcome.step.tokens[row : row + 1], outcome.step.positions[row : row + 1])
        assert answer["ids"][0] == outcome.ids[row]
        np.testing.assert_allclose(answer["logits"][0], outcome.logits[row], atol=1e-5)
