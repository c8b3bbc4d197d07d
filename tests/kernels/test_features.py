"""Every feature of a spec, in a generated kernel, against the reference; f32, so that any mistake shows."""

import pytest

from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.moe_specs import SITU
from tests.reference.small_specs import FEATURES, small_spec

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=2, context=50, logits=True)
UNSUPPORTED = {
    "untied head": "head.bias: a bias of the head is not supported by the kernel yet",
}
SPECS = {name: spec for name, spec in FEATURES.items() if name not in UNSUPPORTED} | {
    "untied": small_spec(embedding={"tied": False}),
    "situ": small_spec(feed_forward=SITU),
}
SLOW = {  # Features whose difference is in the packed weights, or that another one covers.
    "plain",
    "no rope",
    "adjacent pairs",
    "yarn scaling",
    "qk-norm",
    "linear scaling",
    "llama3 scaling",
    "score scale",
    "multi-query",
    "multi-head",
    "partial rotation",
    "unit offset",
    "relu",
    "untied",
    "qk-norm after rope",
    "qk-norm without weight",
    "output gate",
    "gated norm without weight",
    "clamped gate",
    "gated residual",
}


def cases() -> list:
    found = []
    for index, name in enumerate(SPECS):
        slow = [pytest.mark.slow] if name in SLOW else []
        first, second = ("eager", "on_wait") if index % 2 else ("on_wait", "eager")
        found.append(pytest.param(name, first, marks=slow, id=f"{name}, {first}"))
        found.append(pytest.param(name, second, marks=[pytest.mark.slow], id=f"{name}, {second}"))
    return found


@pytest.mark.parametrize(("name", "mode"), cases())
def test_the_kernel_agrees_with_the_reference(name: str, mode: Mode) -> None:
    agrees(in_format(SPECS[name], "f32"), mode)


@pytest.mark.parametrize("name", ["plain", pytest.param("two runs", marks=pytest.mark.slow)])
def test_a_bf16_kernel_differs_by_no_more_than_rounding(name: str) -> None:
    agrees(in_format(SPECS[name], "bf16"), "eager")


@pytest.mark.parametrize(
    ("head_dim", "weights", "rotary_dim"),
    [
        (64, "f32", None),
        (96, "f32", 48),
        (128, "bf16", 64),
        (256, "f32", None),
        pytest.param(80, "bf16", None, marks=pytest.mark.slow),
        pytest.param(64, "bf16", 16, marks=pytest.mark.slow),
        pytest.param(80, "f32", 32, marks=pytest.mark.slow),
        pytest.param(96, "bf16", None, marks=pytest.mark.slow),
        pytest.param(128, "f32", None, marks=pytest.mark.slow),
        pytest.param(256, "bf16", 64, marks=pytest.mark.slow),
    ],
)
def test_heads_of_every_size(head_dim: int, weights: str, rotary_dim: int | None) -> None:
    rope = {"theta": 100.0} | ({} if rotary_dim is None else {"rotary_dim": rotary_dim})
    mixer = {"heads": 2, "kv_heads": 1, "head_dim": head_dim, "rope": rope}
    agrees(in_format(small_spec(mixer, hidden=72), weights), "on_wait")


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_a_kernel_cannot_do_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=UNSUPPORTED[name]):
        build_kernel(FEATURES[name], SHAPE)


def agrees(spec: ModelSpec, mode: Mode) -> None:
    built = build_kernel(spec, SHAPE, small_tiles("ring"))
    beside = trial(built, spec, SHAPE, mode)
    for positions in ((0, 47), (17, 32)):
        outcome, raced = step(beside, positions)
        assert problems(outcome, spec) == []
        assert not raced
