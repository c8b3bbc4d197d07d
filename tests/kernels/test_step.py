"""What a step promises to whoever calls it, on one small kernel."""

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.compiler.trial import Outcome, Trial, problems
from schedc.lower.graph import StepShape
from schedc.run.decoder import Decoder
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from schedc.weights.source import Rows
from tests.kernels.built import Built, build_kernel, in_format, small_tiles, step, trial
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(small_spec(vocab=330), "f32")
SHAPE = StepShape(rows=2, context=50, logits=True)


@pytest.fixture(scope="module")
def built() -> Built:
    return build_kernel(SPEC, SHAPE, small_tiles("ring"))


@pytest.fixture(scope="module")
def stepped(built: Built) -> Trial:
    return trial(built, SPEC, SHAPE, "on_wait")


@pytest.mark.parametrize("positions", [(0, 15), (16, 17), (31, 32), (47, 48), (49, 1)])
def test_positions_at_the_borders_of_cache_tiles(stepped: Trial, positions: tuple[int, int]) -> None:
    outcome, raced = step(stepped, positions)
    assert problems(outcome, SPEC) == []
    assert not raced


def test_the_next_step_sees_what_a_step_wrote(stepped: Trial) -> None:
    for positions in ((15, 30), (16, 31), (17, 32)):
        outcome, _ = step(stepped, positions)
        assert problems(outcome, SPEC) == []


def test_state_is_updated_in_place(stepped: Trial) -> None:
    before = dict(stepped.decoder.state)
    step(stepped, (3, 4))
    assert all(array.is_deleted() for array in before.values())


class Tied(RandomWeights):
    """Every row of the table is zero, `FORWARD` or its opposite: whatever is asked, many ids have the top logit."""

    FORWARD, BACKWARD = (45, 173, 301), (44, 172, 300)

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        values = super().load(name)
        if name == "embed":
            direction = values[0].copy()
            values[:] = 0.0
            values[list(self.FORWARD)], values[list(self.BACKWARD)] = direction, -direction
        return values if rows is None else values[rows[0] : rows[1]]


def test_of_equal_logits_the_lowest_id_wins(built: Built) -> None:
    tied = trial(built, SPEC, SHAPE, "eager", Tied(SPEC, 0))
    outcome, _ = step(tied, (5, 20))
    assert problems(outcome, SPEC) == []
    for row in range(SHAPE.rows):
        top = np.flatnonzero(outcome.logits[row] == outcome.logits[row].max())
        assert top.tolist() in (list(Tied.FORWARD), list(Tied.BACKWARD))  # The same lane of three tiles of the head.
        assert outcome.ids[row] == top[0]


def test_without_logits_the_ids_are_the_same(stepped: Trial) -> None:
    shape = StepShape(2, 50, logits=False)
    made = build_kernel(SPEC, shape, small_tiles("ring"))
    arrays = pack_arrays(made.schedule.layouts, for_kernel(RandomWeights(SPEC, 0), SPEC))
    settings = compat.interpret_params("eager", detect_races=False)
    bare = Decoder(made.module, SPEC, lambda device: arrays, shape, made.schedule.plan.kv_tokens, settings)
    for row in range(2):
        bare.fill(row, [tuple(side[row] for side in kept) for kept in stepped.state])
    for positions in ((2, 19), (3, 20)):
        outcome, _ = step(stepped, positions)
        answer = bare.step(outcome.step.tokens, positions)
        compat.reset_interpreter()
        assert "logits" not in answer
        assert answer["ids"].tolist() == outcome.ids.tolist()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[Outcome]]:
    found = {}
    for policy, mode in (("just_in_time", "on_wait"), ("double_buffer", "eager"), ("ring", "on_wait")):
        beside = trial(build_kernel(SPEC, SHAPE, small_tiles(policy)), SPEC, SHAPE, mode)
        found[policy] = [step(beside, positions)[0] for positions in ((2, 40), (33, 41))]
    return found


@pytest.mark.parametrize("policy", ["double_buffer", "ring"])
def test_a_policy_changes_no_bit_of_the_answer(outcomes: dict[str, list[Outcome]], policy: str) -> None:
    for outcome, baseline in zip(outcomes[policy], outcomes["just_in_time"], strict=True):
        np.testing.assert_array_equal(outcome.ids, baseline.ids)
        np.testing.assert_array_equal(outcome.logits, baseline.logits)
        for state, baseline_state in zip(outcome.got, baseline.got, strict=True):
            for side, baseline_side in zip(state, baseline_state, strict=True):
                np.testing.assert_array_equal(side, baseline_side)
        assert problems(outcome, SPEC) == []
