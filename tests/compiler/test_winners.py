"""Between experts with nearly equal scores rounding decides, and nothing else does."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedc.compiler.dump import compared
from schedc.compiler.trial import Outcome
from schedc.compiler.winners import best_of, distances, winners_of
from schedc.lower.graph import StepShape
from schedc.reference.reference import Reference
from schedc.spec.feed_forwards.router import Router
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import in_format, trial
from tests.kernels.recorded import recorded_kernel
from tests.reference.moe_specs import small_moe

D = 0.01
"""What every score may differ by."""
ROUTERS = {
    "no groups": Router(score="sigmoid", renormalise=True),
    "sums of two": Router(score="sigmoid", renormalise=True, groups=4, groups_kept=2),
    "best of a group": Router(score="sigmoid", renormalise=True, groups=6, groups_kept=1, group_score="max"),
}
EXPERTS, TOP_K = 24, 4


@pytest.mark.parametrize("router", ROUTERS.values(), ids=list(ROUTERS))
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.01, 0.03, 0.1, 1.0]))
def test_what_wins_by_scores_that_differ_by_no_more_is_right(router: Router, seed: int, spread: float) -> None:
    random = np.random.default_rng(seed)
    exact = random.uniform(0, spread, EXPERTS)
    ids = best_of(router, exact + random.uniform(-D, D, EXPERTS), TOP_K)
    assert (distances(router, exact, ids, 2 * D) <= 2 * D).all()
    assert (distances(router, exact, best_of(router, exact, TOP_K), 0.0) == 0).all()


def test_a_winner_that_is_worse_by_more_is_wrong_in_its_place() -> None:
    router, exact = ROUTERS["no groups"], np.linspace(1.0, 0.0, EXPERTS)
    assert best_of(router, exact, TOP_K).tolist() == [0, 1, 2, 3]
    off = distances(router, exact, np.array([0, 2, 1, 4]), 2 * D)
    assert off == pytest.approx(np.array([0, 1, 1, 1]) / (EXPERTS - 1))
    for none in ([0, 1, 2, 2], [0, 1, 2, EXPERTS], [0, 1, 2, -1]):
        assert np.isinf(distances(router, exact, np.array(none), 2 * D)).all()


def test_a_winner_of_a_group_that_could_not_be_kept_is_wrong() -> None:
    router, exact = ROUTERS["best of a group"], np.repeat([0.9, 0.895, 0.5, 0.4, 0.3, 0.2], 4)
    assert (distances(router, exact, np.array([4, 5, 6, 7]), 2 * D) <= 2 * D).all()
    assert np.isinf(distances(router, exact, np.array([8, 9, 10, 11]), 2 * D)).all()


def test_equal_scores_go_to_the_lower_expert() -> None:
    assert best_of(ROUTERS["no groups"], np.ones(EXPERTS), TOP_K).tolist() == [0, 1, 2, 3]


SPEC = in_format(small_moe(), "f32")
SHAPE = StepShape(2, 32, logits=True)


@pytest.fixture(scope="module")
def stepped() -> Iterator[tuple[Outcome, tuple]]:
    built, records = recorded_kernel(SPEC, SHAPE)
    yield trial(built, SPEC, SHAPE, "eager", records=records).step((5, 11)), records


@pytest.mark.kernel
def test_the_reference_chooses_as_it_is_told(stepped: tuple[Outcome, tuple]) -> None:
    outcome, _ = stepped
    assert outcome.copies is not None and outcome.routed is not None
    found = winners_of(outcome.copies, SPEC, (True, False))
    own = outcome.copies.exact.layers[1]["mlp.winners"]
    assert found[1].tolist() == [own[0].tolist(), [-1, -1]]
    reference = Reference(SPEC, RandomWeights(SPEC, 0))
    cache = reference.empty_cache(2, 8)
    free = reference.decode_noted([1, 2], [0, 0], cache)
    told = {1: np.array([[5, 3], [-1, -1]])}
    logits, _, _, notes = reference.decode_noted([1, 2], [0, 0], cache, told)
    assert notes.layers[1]["mlp.winners"].tolist() == [[5, 3], free[3].layers[1]["mlp.winners"][1].tolist()]
    assert np.abs(logits[0] - free[0][0]).max() > 1e-3 and (logits[1] == free[0][1]).all()


@pytest.mark.kernel
def test_a_nearly_equal_winner_is_noted_and_a_worse_one_differs(stepped: tuple[Outcome, tuple]) -> None:
    """As if the scores of the reference had been others."""
    outcome, records = stepped
    copies, routed = outcome.copies, outcome.routed
    assert copies is not None and routed is not None
    best, second = copies.exact.layers[0]["mlp.winners"][0].tolist()

    def of_winners(second_score: float) -> tuple[tuple[int, ...] | None, str]:
        layers = [dict(notes) for notes in copies.exact.layers]
        choices = layers[0]["mlp.choices"].copy()
        choices[0, second] = choices[0, best] + second_score
        layers[0]["mlp.choices"] = choices
        changed = replace(copies, exact=replace(copies.exact, layers=tuple(layers)))
        every = compared(replace(outcome, routed=replace(routed, copies=changed)), SPEC, records)
        one = next(one for one in every if (one.what, one.layer, one.row) == ("mlp.winners", 0, 0))
        return one.element, one.note

    assert of_winners(-1e-6) == (None, "")
    assert of_winners(1e-6) == (None, f"nearly equal: {best} for {second}, {second} for {best}")
    assert of_winners(0.01) == ((0,), "")
