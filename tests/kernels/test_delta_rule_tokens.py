"""States behind consecutive tokens of one sequence that do not all fit VMEM: they go through a few slots."""

import pytest

from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from tests.kernels.built import build_kernel, in_format, small_tiles, step, trial
from tests.reference.recurrent_specs import KDA, alike

pytestmark = pytest.mark.kernel

SPEC = in_format(alike(KDA), "f32")
SHAPE = StepShape(4, 60, logits=True, rows_are="tokens")


@pytest.mark.parametrize("slots", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_a_slot_is_used_again_when_it_has_been_written_back(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the beginning, behind two of four, with inactive rows, with none active, and on from there."""
    monkeypatch.setattr("schedc.lower.states.tokens.most_slots", lambda state_rows: slots)
    built = build_kernel(SPEC, SHAPE, small_tiles("ring"))
    assert next(buffer.slots for buffer in built.program.buffers if buffer.name == "state_0") == slots
    beside = trial(built, SPEC, SHAPE, "on_wait")
    for first, count in ((0, 4), (2, 4), (2, 3), (5, 0), (5, 4)):
        active = tuple(row < count for row in range(4))
        outcome, raced = step(beside, tuple(range(first, first + 4)), active)
        assert problems(outcome, SPEC) == [], (first, count)
        assert not raced
