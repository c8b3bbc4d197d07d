"""Experts in a generated kernel, against the reference; f32, so that any mistake shows."""

import pytest

from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.moe_specs import FEATURES, SHARED, small_moe

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=2, context=50, logits=True)
DEAR = ("softmax", "groups by their best", "weights as they are", "shared", "many experts", "plain experts")


def cases() -> list:
    found = []
    for index, name in enumerate(FEATURES):
        slow = [pytest.mark.slow] if name in DEAR else []
        first, second = ("eager", "on_wait") if index % 2 else ("on_wait", "eager")
        found.append(pytest.param(name, first, marks=slow, id=f"{name}, {first}"))
        found.append(pytest.param(name, second, marks=[pytest.mark.slow], id=f"{name}, {second}"))
    return found


@pytest.mark.parametrize(("name", "mode"), cases())
def test_the_kernel_agrees_with_the_reference(name: str, mode: Mode) -> None:
    agrees(in_format(FEATURES[name], "f32"), mode)


@pytest.mark.parametrize("at_once", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_pass_over_several_experts_ends_with_as_many_as_there_are(at_once: int) -> None:
    """One row chooses three."""
    settings = {"experts_at_once": at_once, "experts_by_number": 1, "expert_slots": 3, "slot_mib": 0.02}
    agrees(in_format(small_moe(top_k=3, shared=SHARED), "f32"), "eager", "ring", **settings)


def agrees(spec: ModelSpec, mode: Mode, policy: str = small_tiles("ring"), **settings: float) -> None:
    built = build_kernel(spec, SHAPE, policy, **settings)
    beside = trial(built, spec, SHAPE, mode)
    for positions, active in (((0, 47), (True, True)), ((17, 32), (False, True))):
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == []
        assert not raced
