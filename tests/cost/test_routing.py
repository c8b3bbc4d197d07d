"""How many different experts a device fetches, by what rows choose."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from schedc.cost.routing import DEFAULT_LOAD, Load, Routing, distinct_experts, parse_routing
from schedc.errors import UserError


def test_the_slowest_of_two_groups_is_the_mean_over_all_choices_of_its_larger_part() -> None:
    """Two of six experts in groups of three: both in one group in 6 of 15 choices, so 1 + 6 / 15."""
    exact = np.mean([max(sum(e < 3 for e in pair), sum(e >= 3 for e in pair)) for pair in combinations(range(6), 2)])
    found = distinct_experts(DEFAULT_LOAD, experts=6, top_k=2, rows=1, members=3)
    assert exact == pytest.approx(1.4)
    assert found.slowest == pytest.approx(exact, abs=4 * found.error)
    assert 0 < found.error < 0.005


def test_two_rows_of_two_groups_by_counting_them_all() -> None:
    pairs = [set(pair) for pair in combinations(range(4), 2)]
    unions = [first | second for first in pairs for second in pairs]
    exact = np.mean([max(len(u & {0, 1}), len(u & {2, 3})) for u in unions])
    found = distinct_experts(DEFAULT_LOAD, experts=4, top_k=2, rows=2, members=2)
    assert found.slowest == pytest.approx(exact, abs=4 * found.error)


def test_a_device_with_all_experts_has_no_slower_one() -> None:
    found = distinct_experts(DEFAULT_LOAD, experts=128, top_k=8, rows=4, members=128)
    assert found.slowest == found.mean
    assert found.error == 0.0


def test_zipf_of_no_exponent_is_uniform_and_of_a_large_one_rows_share_their_experts() -> None:
    uniform = distinct_experts(DEFAULT_LOAD, 64, 4, 8, 16)
    flat, steep = (distinct_experts(Load(parse_routing(f"zipf:{s}")), 64, 4, 8, 16) for s in (0, 2))
    assert flat.mean == pytest.approx(uniform.mean, rel=0.02)
    assert flat.slowest == pytest.approx(uniform.slowest, rel=0.02)
    assert steep.mean < 0.7 * uniform.mean


def test_the_same_seed_draws_the_same() -> None:
    load = Load(parse_routing("zipf:1.1"), seed=7)
    distinct_experts.cache_clear()
    first = distinct_experts(load, 64, 4, 2, 16)
    distinct_experts.cache_clear()
    assert distinct_experts(load, 64, 4, 2, 16) == first
    assert distinct_experts(Load(parse_routing("zipf:1.1"), seed=8), 64, 4, 2, 16) != first


@pytest.mark.parametrize("suffix", ["txt", "npy"])
def test_recorded_choices_are_taken_as_they_are(tmp_path: Path, suffix: str) -> None:
    """Steps of two rows: experts 0, 1, 4, then 1 and 2 twice; groups of 4 have 2 and 1, then 2 and 0."""
    choices = [[0, 1], [4, 1], [2, 1], [1, 2]]
    path = tmp_path / f"choices.{suffix}"
    if suffix == "npy":
        np.save(path, np.array(choices))
    else:
        path.write_text("# two of eight\n" + "\n".join(f"{a}, {b}" for a, b in choices))
    found = distinct_experts(Load(parse_routing(str(path))), experts=8, top_k=2, rows=2, members=4)
    assert (found.slowest, found.mean) == (2.0, 1.25)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zipf:steep", "the exponent must be a number of at least 0"),
        ("ziph:1", "is neither uniform nor like zipf:1.1"),
    ],
)
def test_a_routing_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_routing(text)


def test_choices_of_another_router_are_refused() -> None:
    load = Load(Routing("recorded", choices=((0, 1, 2),), name="mine.txt"))
    with pytest.raises(
        UserError, match=r"mine\.txt: choice 1 is 0 1 2; this router takes 2 different experts of 0 to 7"
    ):
        distinct_experts(load, experts=8, top_k=2, rows=1, members=4)
    few = Load(Routing("recorded", choices=((0, 1),), name="mine.txt"))
    with pytest.raises(UserError, match="has 1 choices, fewer than the 2 rows"):
        distinct_experts(few, experts=8, top_k=2, rows=2, members=4)
