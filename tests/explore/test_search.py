"""A search gives plans that can be built, fit and are proven; the same seed gives the same plan; it can go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from settings import setting

from schedc.compiler.pipeline import limits_of, with_addresses
from schedc.compiler.refusals import prove
from schedc.errors import UserError
from schedc.explore.executors import executor
from schedc.explore.search.improve import Task, improve
from schedc.explore.search.population import Effort, Found, search
from schedc.explore.setting import prepared
from schedc.explore.starts import starts
from schedc.schedule.registry import run_policy

SETTING = setting("smollm2-135m")
EXPERTS = setting("gpt-oss-20b", 8)


def searched(effort: Effort, state: Path | None = None, stop_after: int = 10**9) -> Found:
    plans = starts(prepared(SETTING).problem)

    def report(done: int, rounds: int, best: float, simulated: int) -> None:
        if done == stop_after:
            raise KeyboardInterrupt

    with executor() as run:
        return search([SETTING], [(0, plan) for plan in plans.values()], effort, run, state, report)


@cache
def short() -> Found:
    return searched(Effort(rounds=2, steps=1000, seed=3))


def test_what_is_found_is_faster_than_what_it_starts_from_and_is_proven() -> None:
    ready, found = prepared(SETTING), short()
    begin = min(ready.step_ns(plan) for plan in starts(ready.problem).values())
    assert found.step_ns < 0.99 * begin
    assert found.step_ns == ready.step_ns(found.plan)
    assert prove(with_addresses(ready.program(found.plan), SETTING.target), limits_of(SETTING.target)).proven


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert searched(Effort(rounds=2, steps=1000, seed=3)).plan == short().plan
    assert searched(Effort(rounds=2, steps=1000, seed=4)).plan != short().plan


def test_an_interrupted_search_keeps_what_it_has_and_goes_on_to_the_same_end(tmp_path: Path) -> None:
    state, effort = tmp_path / "state.json", Effort(rounds=2, steps=1000, seed=3)
    stopped = searched(effort, state, stop_after=1)
    assert stopped.rounds == 1
    assert stopped.step_ns >= short().step_ns
    assert searched(effort, state).plan == short().plan
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_an_interrupt_right_after_a_round_was_counted_loses_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    searched(Effort(rounds=1, steps=500, seed=3), state)
    assert searched(Effort(rounds=1, steps=500, seed=3), state).simulated > 0


def test_the_state_of_another_search_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    searched(Effort(rounds=1, steps=100, seed=3), state)
    with pytest.raises(UserError, match=r"is the state of another search .*seed 3, .* not .*seed 4,"):
        searched(Effort(rounds=1, steps=100, seed=4), state)
    with pytest.raises(UserError, match=r"is the state of another search .*steps 100,.* not .*steps 200,"):
        searched(Effort(rounds=1, steps=200, seed=3), state)
    other, ring = setting("smollm2-135m", context=512), run_policy("ring", prepared(SETTING).problem, {})
    with executor() as run, pytest.raises(UserError, match=r"another search .*context 1024,.* not .*context 512,"):
        search([other], [(0, ring)], Effort(rounds=1, steps=100, seed=3), run, state)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: "[]",
        lambda data: json.dumps(data | {"round": "one"}),
        lambda data: json.dumps(data | {"members": [data["members"][0] | {"step_ns": "fast"}]}),
        lambda data: json.dumps(data | {"members": [data["members"][0] | {"plan": {}}]}),
    ],
    ids=["a list", "no round", "no time", "no plan"],
)
def test_a_damaged_state_is_refused_by_its_name(change: Callable[[Any], str], tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    searched(Effort(rounds=1, steps=100, seed=3), state)
    state.write_text(change(json.loads(state.read_text())))
    with pytest.raises(UserError, match=r"state\.json is not the state of a search"):
        searched(Effort(rounds=1, steps=100, seed=3), state)


def test_a_state_that_cannot_be_kept_is_said_before_the_search(tmp_path: Path) -> None:
    rounds: list[int] = []
    with executor() as run, pytest.raises(UserError, match="the state cannot be written"):
        plans = [(0, plan) for plan in starts(prepared(SETTING).problem).values()]
        search([SETTING], plans, Effort(1, 10), run, tmp_path / "no" / "s.json", lambda *told: rounds.append(told[0]))
    assert rounds == []
    with pytest.raises(UserError, match="the state cannot be read"):
        searched(Effort(rounds=0), tmp_path)


def test_seconds_end_a_search_after_the_round_they_are_over_in() -> None:
    assert searched(Effort(rounds=10**6, steps=200, seconds=0.5)).rounds < 100


@pytest.mark.parametrize("seed", range(4))
def test_whatever_annealing_makes_of_a_plan_can_be_built_fits_and_takes_what_was_said(seed: int) -> None:
    ready = prepared(EXPERTS)
    for plan in list(starts(ready.problem).values())[:3]:
        outcome = improve(Task(EXPERTS, plan, seed, 2000))
        assert outcome.reason == ""
        assert ready.faults(outcome.plan) == []
        assert ready.step_ns(outcome.plan) == pytest.approx(outcome.step_ns, rel=2e-2)


def test_a_plan_that_does_not_fit_gets_fewer_slots() -> None:
    from dataclasses import replace

    ready = prepared(SETTING)
    plan = starts(ready.problem)["ring slot_mib=4 expert_mib=4"]
    huge = replace(plan, rings=tuple(replace(ring, slots=60, ahead=60) for ring in plan.rings))
    assert ready.step_ns(huge) == float("inf")
    outcome = improve(Task(SETTING, huge, 0, 0))
    assert ready.step_ns(outcome.plan) < float("inf")
    assert max(ring.slots for ring in outcome.plan.rings if ring.name == "weights") < 60


def test_addresses_that_are_no_executor_are_refused() -> None:
    with pytest.raises(UserError, match="must be local, dask://host:port or ray://host:port"), executor("cloud"):
        pass
