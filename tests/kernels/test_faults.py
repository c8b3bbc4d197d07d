"""What the proof refuses, the interpreter finds too: in the mode named here, and in the other only some of it."""

from functools import cache

import pytest

from schedc.compiler.pipeline import limits_of
from schedc.compiler.trial import problems
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.kernels.built import Built, Mode, build_kernel, built_of, in_format, small_tiles, step, trial
from tests.kernels.faults import FAULTS
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(small_spec(feed_forward={"width": 300}), "f32")
SHAPE = StepShape(rows=1, context=64, logits=True)
LIMITS = limits_of(parse_target("tpu7x"))


@cache
def right() -> Built:
    return build_kernel(SPEC, SHAPE, small_tiles("ring"))


def found_by_interpreting(fault: str, mode: Mode) -> set[str]:
    """`race`, `not finite`, `wrong`: what two steps show."""
    built = built_of(right().schedule, FAULTS[fault](right().program))
    beside = trial(built, SPEC, SHAPE, mode)
    found = set()
    for position in (63, 40):
        outcome, raced = step(beside, (position,))
        lines = problems(outcome, SPEC)
        found |= {"race"} if raced else set()
        found |= {"not finite" if "not finite" in line else "wrong" for line in lines}
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_the_proof_refuses_it(fault: str) -> None:
    assert verify(right().program, LIMITS).proven
    assert not verify(FAULTS[fault](right().program), LIMITS).proven


@pytest.mark.parametrize(
    ("fault", "mode", "found"),
    [
        ("without_weight_wait", "eager", {"race"}),
        ("without_weight_wait", "on_wait", {"wrong", "not finite"}),
        ("without_cache_wait", "eager", {"race"}),
        ("with_early_refill", "on_wait", {"race"}),
        pytest.param("without_cache_wait", "on_wait", {"wrong"}, marks=pytest.mark.slow),
        pytest.param("with_early_refill", "eager", {"race", "wrong"}, marks=pytest.mark.slow),
        pytest.param("with_next_slot", "eager", {"race", "wrong"}, marks=pytest.mark.slow),
        pytest.param("with_next_slot", "on_wait", {"race", "wrong"}, marks=pytest.mark.slow),
    ],
)
def test_the_interpreter_finds_it(fault: str, mode: Mode, found: set[str]) -> None:
    assert found_by_interpreting(fault, mode) == found
