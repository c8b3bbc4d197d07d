"""A search in stages: what each may change, how its rounds are shared out, what is said of each."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from settings import setting

from schedc.explore.executors import executor
from schedc.explore.placements import placements_beside
from schedc.explore.search.neighbours import neighbour
from schedc.explore.search.population import Effort, Found, search
from schedc.explore.search.stages import stage_of, stages_of
from schedc.explore.setting import prepared
from schedc.explore.starts import starts
from schedc.schedule.registry import run_policy

EXPERTS = setting("gpt-oss-20b", 8)


def test_rounds_are_shared_out_evenly_the_first_stages_have_one_more() -> None:
    stages = stages_of(sums=True, wires=False, settings=3)
    assert [stage.name for stage in stages] == ["order", "collectives", "placement"]
    assert [stage_of(stages, done, 8) for done in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_stage_changes_only_what_it_may() -> None:
    problem = prepared(EXPERTS).problem
    plan = run_policy("ring", problem, {})
    order, collectives = stages_of(sums=True, wires=False, settings=1)
    (_, wires) = stages_of(sums=True, wires=True, settings=1)
    for stage, sites, words in ((order, False, False), (collectives, True, False), (wires, True, True)):
        found = [neighbour(problem, plan, Random(seed), stage.kinds) for seed in range(80)]
        assert (any(one.collectives for one in found), any(one.wires for one in found)) == (sites, words)


def test_one_device_has_nothing_but_its_order() -> None:
    assert [stage.name for stage in stages_of(sums=False, wires=True, settings=1)] == ["order"]
    assert placements_beside(setting("smollm2-135m")) == {}


def test_placements_beside_are_those_that_the_model_takes() -> None:
    found = placements_beside(EXPERTS)
    assert {"experts 8x1", "experts 2x4", "head replicated"} <= found.keys()
    assert "kv sequence" not in found or prepared(found["kv sequence"]).problem.segments
    assert all(one.shape.placement != EXPERTS.shape.placement for one in found.values())
    normed = placements_beside(setting("qwen3-0.6b", 2))
    assert not any(name.startswith("experts") for name in normed)


def staged(state: Path | None = None, stop_after: int = 10**9) -> Found:
    beside = placements_beside(EXPERTS)
    settings = [beside["experts 8x1"], EXPERTS]
    begin = [(s, plan) for s, one in enumerate(settings) for plan in starts(prepared(one).problem, few=True).values()]

    def report(done: int, rounds: int, best: float, simulated: int) -> None:
        if done == stop_after:
            raise KeyboardInterrupt

    with executor() as run:
        stages = stages_of(True, False, len(settings))
        return search(settings, begin, Effort(3, 100, seed=1), run, state, report, stages)


def test_a_search_says_what_each_stage_is_worth_and_finds_a_better_placement(tmp_path: Path) -> None:
    found = staged()
    assert [one.stage for one in found.reached] == ["start", "order", "collectives", "placement"]
    times = [one.step_ns for one in found.reached]
    assert times[-1] == found.step_ns
    assert times == sorted(times, reverse=True)
    assert found.setting.shape.placement == EXPERTS.shape.placement
    assert found.step_ns < 0.9 * times[0]
    state = tmp_path / "state.json"
    staged(state, stop_after=2)
    assert staged(state).plan == found.plan


@pytest.mark.parametrize("wanted", [0, 2])
def test_a_search_of_no_rounds_has_its_starts(wanted: int) -> None:
    ready = prepared(EXPERTS)
    begin = [(0, plan) for plan in list(starts(ready.problem, few=True).values())[: wanted + 1]]
    with executor() as run:
        found = search([EXPERTS], begin, Effort(0), run, stages=stages_of(True, False, 1))
    assert [one.stage for one in found.reached] == ["start"]
    assert found.step_ns == min(ready.step_ns(plan) for _, plan in begin)
