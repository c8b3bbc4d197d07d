"""The plans that come with schedc can be built, fit, and are faster than the default policy."""

from __future__ import annotations

import pytest

from schedc.cli.options import ScheduleOptions
from schedc.cli.planned import with_assumed
from schedc.cli.predict_options import PredictOptions
from schedc.explore.setting import Setting, prepared
from schedc.schedule.plan_file import VERSION, find_plan, list_plans, read_plan
from schedc.schedule.registry import run_policy
from schedc.spec.load import load_spec


@pytest.mark.parametrize("name", list_plans())
def test_a_plan_that_comes_with_schedc_takes_what_it_says_and_beats_the_default_policy(name: str) -> None:
    """At the placement and by the cycles that it was found with."""
    file = read_plan(find_plan(name))
    request = ScheduleOptions(plan=name).request(load_spec(file.model))
    assumed = with_assumed(PredictOptions(), name)
    machine, load = assumed.machine(request.target), assumed.load()
    ready = prepared(Setting(request.spec, request.shape, request.target, machine, load))
    plan = file.plan.to_plan()
    assert ready.faults(plan) == []
    assert ready.step_ns(plan) / 1e3 == pytest.approx(file.predicted_us, abs=1e-3)
    assert ready.step_ns(plan) < 0.98 * ready.step_ns(run_policy("ring", ready.problem, {}))
    assert "/" not in file.found_by


def test_what_a_plan_that_comes_with_schedc_needs_is_in_its_file() -> None:
    for name in list_plans():
        file = read_plan(find_plan(name))
        assert file.version == VERSION
        assert None not in (file.wire, file.collective, file.placement, file.assumed, file.predicted_us)


def test_there_is_one_for_kimi_k3() -> None:
    assert "kimi-k3" in list_plans()
