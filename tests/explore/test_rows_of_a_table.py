"""What is said of plans beside each other, and of a plan without one of its decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from settings import setting

from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.explore.ablate import ablations
from schedc.explore.compare import Planned, compared, policies_named
from schedc.explore.executors import executor
from schedc.explore.row import row
from schedc.explore.setting import prepared
from schedc.explore.sweep import draw, lines
from schedc.schedule.registry import POLICIES, run_policy

DENSE, EXPERTS = setting("smollm2-135m"), setting("gpt-oss-20b", 8)


def test_a_row_says_what_the_full_simulation_says() -> None:
    ready = prepared(EXPERTS)
    plan = run_policy("ring", ready.problem, {})
    found = row("ring", ready, plan)
    timeline = simulate(ready.program(plan), EXPERTS.machine)
    assert found.step_us == pytest.approx(timeline.step_ns / 1e3, abs=1e-3)
    assert found.waits_us == pytest.approx(timeline.stall_ns / 1e3, abs=1e-3)
    assert found.bound is not None
    assert found.bound[1] >= 1.0


def test_one_device_waits_for_no_other_and_eight_do() -> None:
    for case, exposed in ((DENSE, False), (EXPERTS, True)):
        found = row("ring", prepared(case), run_policy("ring", prepared(case).problem, {}))
        assert found.exposed_us is not None and found.waits_us is not None
        assert (found.exposed_us > 0) is exposed
        assert found.exposed_us <= found.waits_us


def test_every_policy_has_a_row_and_one_that_does_not_fit_its_reason() -> None:
    ready = prepared(DENSE)
    plan = run_policy("ring", ready.problem, {})
    huge = replace(plan, rings=tuple(replace(ring, slots=500, ahead=500) for ring in plan.rings))
    with executor() as run:
        rows = compared(DENSE, list(POLICIES), {"huge": Planned(DENSE, huge)}, run)
    assert [r.name for r in rows] == [*POLICIES, "huge"]
    assert all(r.step_us for r in rows[:-1])
    assert rows[-1].step_us is None
    assert "MiB of VMEM, there are" in rows[-1].reason


def test_a_search_is_not_among_all_policies() -> None:
    assert set(policies_named("all")) == {*POLICIES, "handwritten"}
    with pytest.raises(UserError, match="search tries many plans"):
        policies_named("ring,search")


def test_a_decision_is_worth_what_the_step_takes_longer_without_it() -> None:
    """Of a ring of eight slots in tiles of 2 MiB the prefetch is worth most: without it every tile is waited for."""
    ready = prepared(DENSE)
    plan = run_policy("ring", ready.problem, {})
    found = {ablation.decision: ablation for ablation in ablations(ready, plan)}
    weights = next(ring for ring in plan.rings if ring.name == "weights")
    without = replace(plan, rings=tuple(replace(ring, ahead=0) if ring is weights else ring for ring in plan.rings))
    ablation = found[f"{weights.ahead} ahead in ring weights (0)"]
    assert ablation.step_us == pytest.approx(ready.step_ns(without) / 1e3, abs=1e-3)
    assert ablation.worth_us == pytest.approx((ready.step_ns(without) - ready.step_ns(plan)) / 1e3, abs=2e-3)
    assert next(iter(found.values())) is ablation


def test_more_slots_are_drawn_until_they_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ready = prepared(DENSE)
    found = lines(ready, run_policy("ring", ready.problem, {}))
    depth = next(line for line in found if line.panel == "slots of a ring" and line.name.startswith("weights"))
    assert dict(depth.points)[1] > dict(depth.points)[depth.chosen]
    assert max(n for n, _ in depth.points) < 32
    draw(found, "title", tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    with pytest.raises(UserError, match=r"plot\.tea"):
        draw(found, "title", tmp_path / "plot.tea")
