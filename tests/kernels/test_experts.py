"""Experts in a generated kernel, against the reference; f32, so that any mistake shows."""

import pytest

from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.moe_specs import FEATURES

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


def agrees(spec: ModelSpec, mode: Mode) -> None:
    built = build_kernel(spec, SHAPE, small_tiles("ring"))
    beside = trial(built, spec, SHAPE, mode)
    for positions, active in (((0, 47), (True, True)), ((17, 32), (False, True))):
        outcome, raced = step(beside, positions, active)
        assert problems(outcome, spec) == []
        assert not raced
