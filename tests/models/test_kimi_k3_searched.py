"""A schedule that a search has found for the scaled-down Kimi K3, interpreted on two devices beside the numpy step."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedc.cost.machine import Machine
from schedc.explore.executors import executor
from schedc.explore.search.population import Effort, Found, search
from schedc.explore.search.stages import stages_of
from schedc.explore.setting import Setting, prepared
from schedc.explore.starts import starts
from schedc.lower.collectives.communication import Communication
from schedc.lower.collectives.group import topology_of
from schedc.lower.graph import StepShape
from schedc.schedule.plan_file import VERSION, PlanFile, plan_part, write_plan
from schedc.schedule.registry import run_policy
from schedc.target.target import parse_target
from tests.models.decode_steps import Question, decoded
from tests.models.kimi_k3_mini import EXACT, mini
from tests.models.test_kimi_k3_steps import SEED, agrees, tokens

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

TARGET, DEVICES, STEPS = "tpu7x:2x2x1", 2, 2


def found() -> tuple[Setting, Found]:
    """As `schedc explore kimi-k3-mini --policy search`, of the step that is interpreted: two rows in f32."""
    spec, target = mini(**EXACT), parse_target(TARGET, DEVICES)
    talk = Communication(topology_of(target))
    setting = Setting(spec, StepShape(2, STEPS, True, DEVICES, communication=talk), target, Machine.of(target))
    begin = [(0, plan) for plan in starts(prepared(setting).problem, few=True).values()]
    with executor() as run:
        return setting, search([setting], begin, Effort(2, 1000, seed=4), run, stages=stages_of(True, False, 1))


def test_a_searched_schedule_computes_what_the_reference_does(tmp_path: Path) -> None:
    setting, best = found()
    ready, path = prepared(setting), tmp_path / "plan.yaml"
    assert best.plan.order, "no other order of the phases was found: nothing of the search is tried"
    assert best.step_ns < ready.step_ns(run_policy("ring", ready.problem, {}))
    file = PlanFile(version=VERSION, model=setting.spec.name, target=TARGET, devices=DEVICES, rows=2, context=STEPS,
                    plan=plan_part(best.plan))  # fmt: skip
    path.write_text(write_plan(file))
    formats = {"quantization": EXACT, "kv": {"dtype": "f32"}}
    question = Question("kimi-k3-mini", formats, TARGET, DEVICES, "on_wait", str(path), SEED, tokens(STEPS), {})
    agrees(decoded(question, seconds=3600))
