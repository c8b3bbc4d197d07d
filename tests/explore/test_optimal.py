"""The yardstick: a solver's shortest period, which the search comes near."""

from __future__ import annotations

import pytest
from settings import setting

from schedc.errors import UserError
from schedc.explore.exact import solve
from schedc.explore.period import Period, Tile, Work
from schedc.explore.search.improve import Task, improve
from schedc.explore.setting import prepared
from schedc.explore.yardstick import optimum
from schedc.schedule.registry import run_policy

pytest.importorskip("ortools")
SETTING = setting("smollm2-135m")


def two_phases(rows: int, need: int = 60) -> Period:
    """Each takes 100 ns of the core and a tile of 8 rows; a transfer takes `need` ns of the HBM and 20 more."""
    tile = Tile(0, 8, need)
    return Period(0, (Work(0, (100,), (tile,)), Work(1, (100,), (tile,))), {}, {}, 20)


def period(work: Period, rows: int, edges: tuple[tuple[int, int], ...] = ()) -> int:
    solved = solve(work, edges, [0], rows, 20.0)
    assert solved is not None
    assert solved.proven
    return solved.period_ns


def test_with_room_for_all_the_core_never_waits() -> None:
    assert period(two_phases(32), 32) == 200


def test_with_one_slot_every_tile_is_waited_for() -> None:
    """60 of the HBM, 20 of latency, 100 of the core, twice."""
    assert period(two_phases(8), 8) == 360


def test_with_two_slots_a_transfer_goes_beside_the_other_phase() -> None:
    assert period(two_phases(16), 16) == 200


def test_the_hbm_binds_when_it_takes_longer() -> None:
    assert period(two_phases(32, need=150), 32) == 300


def test_an_exchange_goes_beside_a_phase_that_does_not_need_it() -> None:
    """0 sends to 1, which is 300 later; 2 fits between."""
    works = tuple(Work(unit, (100,)) for unit in range(3))
    work = Period(0, works, {(0, 1): 300}, {}, 20)
    assert period(work, 8) == 500
    solved = solve(work, (), [0], 8, 20.0)
    assert solved is not None
    assert solved.order in ((0, 2, 1), (2, 0, 1), (0, 1, 2))
    assert period(work, 8, ((1, 2),)) == 600


def test_a_search_of_the_same_tiles_is_within_two_percent_of_the_optimum() -> None:
    ready = prepared(SETTING)
    plan = run_policy("ring", ready.problem, {})
    best = optimum(ready, plan, 30.0)
    assert best is not None
    assert best.solved.proven
    found = min(ready.step_ns(improve(Task(SETTING, plan, seed, 10_000)).plan) for seed in range(2))
    assert found <= 1.02 * best.step_ns


def test_no_search_beats_the_bound_of_the_solver() -> None:
    """Of its period, over all trips of the loop."""
    ready = prepared(SETTING)
    best = optimum(ready, run_policy("ring", ready.problem, {}), 30.0)
    assert best is not None
    loop = max(segment.trips for segment in ready.problem.segments)
    assert best.step_ns >= loop * best.solved.bound_ns


def test_a_model_with_chosen_experts_is_refused() -> None:
    ready = prepared(setting("gpt-oss-20b", 8))
    with pytest.raises(UserError, match="without chosen experts; use the policy search"):
        optimum(ready, run_policy("ring", ready.problem, {}), 1.0)
