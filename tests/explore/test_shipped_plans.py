"""The plans that come with schedc can be built, fit, and are faster than the default policy."""

from __future__ import annotations

import pytest

from schedc.cli.options import ScheduleOptions
from schedc.cost.machine import Machine
from schedc.explore.setting import Setting, prepared
from schedc.schedule.plan_file import find_plan, list_plans, read_plan
from schedc.schedule.registry import run_policy
from schedc.spec.load import load_spec


@pytest.mark.parametrize("name", list_plans())
def test_a_plan_that_comes_with_schedc_beats_the_default_policy(name: str) -> None:
    file = read_plan(find_plan(name))
    request = ScheduleOptions(plan=name).request(load_spec(file.model), file.rows)
    ready = prepared(Setting(request.spec, request.shape, request.target, Machine.of(request.target)))
    plan = file.plan.to_plan()
    assert ready.faults(plan) == []
    assert ready.step_ns(plan) < 0.98 * ready.step_ns(run_policy("ring", ready.problem, {}))


def test_there_is_one_for_kimi_k3() -> None:
    assert "kimi-k3" in list_plans()
