"""A plan as a file: what was written is read, and what is not a plan is refused with all its faults."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from settings import setting

from schedc.cli.options import ScheduleOptions
from schedc.compiler.pricing import schedule
from schedc.errors import UserError
from schedc.explore.search.improve import Task, improve
from schedc.explore.setting import prepared
from schedc.explore.starts import starts
from schedc.schedule.plan import Plan, Ring
from schedc.schedule.plan_file import PlanFile, PlanPart, RingPart, plan_part, read_plan, write_plan
from schedc.schedule.registry import run_policy
from schedc.spec.load import load_spec

SETTING = setting("gpt-oss-20b", 8)


def written(plan: Plan, folder: Path) -> Path:
    path = folder / "plan.yaml"
    file = PlanFile(model="m", target="t", devices=8, rows=1, context=1024, predicted_us=12.5, plan=plan_part(plan))
    path.write_text(write_plan(file))
    return path


def test_every_choice_of_a_plan_and_a_ring_is_a_key_of_the_file() -> None:
    assert set(PlanPart.model_fields) == {field.name for field in fields(Plan)}
    assert set(RingPart.model_fields) == {field.name for field in fields(Ring)}


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_is_read_as_it_was_written(seed: int, tmp_path: Path) -> None:
    start = list(starts(prepared(SETTING).problem).values())[seed]
    plan = improve(Task(SETTING, start, seed, 500)).plan
    path = written(plan, tmp_path)
    assert read_plan(path).plan.to_plan() == plan
    assert read_plan(path).predicted_us == 12.5
    assert written(read_plan(path).plan.to_plan(), tmp_path).read_text() == path.read_text()


def test_a_file_is_a_policy_that_answers_with_its_plan(tmp_path: Path) -> None:
    problem = prepared(SETTING).problem
    plan = run_policy("double_buffer", problem, {})
    assert run_policy(str(written(plan, tmp_path)), problem, {}) == plan


def test_a_plan_of_another_model_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    path = written(run_policy("ring", prepared(SETTING).problem, {}), tmp_path)
    other = prepared(setting("smollm2-135m")).problem
    with pytest.raises(UserError, match="gave a plan that cannot be built"):
        run_policy(str(path), other, {})


def test_all_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("model: m\ntarget: t\ndevices: 0\nrows: 1\ncontext: 9\nplan: {kv_tokens: many, ring: []}\n")
    with pytest.raises(UserError) as error:
        read_plan(path)
    for fault in (
        "devices: must be",
        "plan.kv_tokens: must be a whole number",
        "plan.ring: unknown key; nearest: rings",
    ):
        assert fault in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"plan .*none\.yaml does not exist"):
        read_plan(tmp_path / "none.yaml")


def test_more_tiles_ahead_than_slots_are_refused(tmp_path: Path) -> None:
    path = written(run_policy("ring", prepared(SETTING).problem, {}), tmp_path)
    path.write_text(path.read_text().replace("ahead: 2", "ahead: 3"))
    with pytest.raises(UserError, match="3 tiles ahead do not fit 2 slots"):
        read_plan(path)


def test_a_plan_that_comes_with_schedc_has_the_same_name_on_every_machine(tmp_path: Path) -> None:
    options = ScheduleOptions(plan="qwen3.5-27b")
    request = options.request(load_spec("qwen3.5-27b"), 1)
    made = schedule(request.spec, request.shape, request.target, request.policy, request.settings)
    assert dict(made.program.attributes)["policy"] == "plan:qwen3.5-27b"
