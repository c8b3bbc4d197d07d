"""Mixers with a delta rule in generated kernels, against the reference."""

import pytest

from schedc.compiler.trial import problems
from schedc.errors import SpecError
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, in_format, small_tiles, step, trial
from tests.reference.recurrent_specs import FEATURES, GATED_DELTA, KDA, alike

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=3, context=50, logits=True)
MIXERS = [name for name in FEATURES if "delta" in name or "kda" in name]
FIRST = {("kda", "on_wait"), ("gated delta beside attention", "eager")}
"""What all runs of the tests interpret."""


def cases() -> list:
    every = [(name, mode) for name in MIXERS for mode in ("eager", "on_wait")]
    return [pytest.param(*case, marks=[] if case in FIRST else [pytest.mark.slow]) for case in every]


@pytest.mark.parametrize(("name", "mode"), cases())
def test_the_kernel_agrees_with_the_reference(name: str, mode: Mode) -> None:
    agrees(in_format(FEATURES[name], "f32"), mode)


def agrees(spec: ModelSpec, mode: Mode, shape: StepShape = SHAPE) -> None:
    """A row at position 0, rows that go on, and an inactive one, whose state stays."""
    built = build_kernel(spec, shape, small_tiles("ring"))
    beside = trial(built, spec, shape, mode)
    for positions, active in (((0, 47, 5), (True, True, False)), ((1, 0, 6), (True, True, True))):
        outcome, raced = step(beside, positions[: shape.rows], active[: shape.rows])
        assert problems(outcome, spec) == []
        assert not raced


@pytest.mark.slow
@pytest.mark.parametrize("mixer", [KDA, GATED_DELTA], ids=["kda", "gated delta"])
def test_a_bf16_kernel_differs_by_no_more_than_rounding(mixer: dict) -> None:
    agrees(in_format(alike(mixer), "bf16"), "eager")


@pytest.mark.parametrize("mode", ["on_wait", pytest.param("eager", marks=pytest.mark.slow)])
def test_states_that_do_not_all_fit_go_through_two_slots(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedc.lower.states.stream.MOST_ROWS", 0)
    spec = in_format(alike(KDA), "f32")
    program = build_kernel(spec, SHAPE, small_tiles("ring")).program
    assert next(buffer.slots for buffer in program.buffers if buffer.name == "state_0") == 2
    agrees(spec, mode)


@pytest.mark.slow
def test_many_heads_go_in_groups_and_many_sequences_in_a_loop() -> None:
    many = GATED_DELTA | {"key_heads": 16, "value_heads": 32}
    agrees(in_format(alike(many), "f32"), "on_wait")


def test_one_sequence_alone() -> None:
    agrees(in_format(alike(KDA), "f32"), "on_wait", StepShape(rows=1, context=50, logits=True))


def test_keys_of_more_than_a_panel_are_refused() -> None:
    with pytest.raises(SpecError, match=r"mixer\.key_dim: 256, but keys and values over 128 are not supported"):
        build_kernel(alike(KDA, key_dim=256), SHAPE)
