"""The fast simulation is the full one: exactly for a program, nearly for an ordering of a model, alike in its ranks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from settings import setting

from schedc.cli.options import ScheduleOptions
from schedc.cost.machine import Machine
from schedc.cost.profile import read_profile
from schedc.cost.routing import Load, parse_routing
from schedc.cost.simulate import Stuck, simulate
from schedc.explore.executors import executor
from schedc.explore.fast.columns import step_ns as traced_ns
from schedc.explore.fast.ordering import ordering_of, plan_of
from schedc.explore.fast.ordering import step_ns as ordered_ns
from schedc.explore.fast.trace import record
from schedc.explore.search.improve import Task, improve
from schedc.explore.search.neighbours import neighbour
from schedc.explore.setting import Prepared, Setting, prepared
from schedc.explore.starts import starts
from schedc.schedule.plan import Plan
from schedc.schedule.registry import run_policy
from schedc.spec.load import load_spec

DENSE, EXPERTS = ("smollm2-135m", 1), ("gpt-oss-20b", 8)


@cache
def ready(model: str, devices: int) -> Prepared:
    return prepared(setting(model, devices))


def rank(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [0] * len(values)
    for place, index in enumerate(order):
        places[index] = place
    return places


def spearman(a: list[float], b: list[float]) -> float:
    """Spearman's rank correlation, of values without ties."""
    n = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(rank(a), rank(b), strict=True)) / (n * (n * n - 1))


def random_plans(case: Prepared, count: int) -> list[Plan]:
    """Plans beside those of the policies, in random legal orders, that can be built."""
    found: list[Plan] = []
    begin = list(starts(case.problem).values())
    for number in range(10 * count):
        random = Random(number)
        plan = neighbour(case.problem, random.choice(begin), random)
        outcome = improve(Task(case.setting, plan, number, random.choice((0, 30, 300))))
        if not outcome.reason and not case.faults(outcome.plan):
            found.append(outcome.plan)
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("model, devices", [DENSE, EXPERTS])
@pytest.mark.parametrize("policy", ["ring", "just_in_time"])
def test_a_recorded_program_takes_exactly_what_the_full_simulation_says(model: str, devices: int, policy: str) -> None:
    case = ready(model, devices)
    program = case.program(run_policy(policy, case.problem, {}))
    machine = case.setting.machine
    assert traced_ns(record(program, machine), machine) == pytest.approx(simulate(program, machine).step_ns, rel=1e-9)


@pytest.mark.parametrize("in_flight, skew", [(1, 0.0), (3, 500.0)])
def test_other_constants_of_the_machine_count_alike(in_flight: int, skew: float) -> None:
    case = ready(*EXPERTS)
    program = case.program(run_policy("ring", case.problem, {}))
    machine = replace(case.setting.machine, in_flight=in_flight, skew_ns=skew)
    assert traced_ns(record(program, machine), machine) == pytest.approx(simulate(program, machine).step_ns, rel=1e-9)


@pytest.mark.parametrize("model, devices", [DENSE, EXPERTS])
@pytest.mark.parametrize("policy", ["ring", "double_buffer", "just_in_time"])
def test_an_ordering_put_together_from_phases_takes_what_its_program_takes(
    model: str, devices: int, policy: str
) -> None:
    """Of a step of many layers a few are simulated; the guards of refills are simplified."""
    case = ready(model, devices)
    plan = run_policy(policy, case.problem, {})
    ordering = ordering_of(case.model(plan), case.problem, plan)
    assert ordered_ns(case.model(plan), ordering) == pytest.approx(case.timeline(plan).step_ns, rel=5e-3)


def test_reordered_deferred_and_resized_plans_take_what_their_programs_take() -> None:
    case = ready(*EXPERTS)
    plans = random_plans(case, 12)
    assert any(plan.order for plan in plans)
    assert any(plan.deferred for plan in plans)
    for plan in plans:
        model = case.model(plan)
        fast = ordered_ns(model, ordering_of(model, case.problem, plan))
        assert fast == pytest.approx(case.timeline(plan).step_ns, rel=2e-2)


@pytest.mark.parametrize("model, devices", [DENSE, EXPERTS])
def test_plans_rank_as_in_the_full_simulation(model: str, devices: int) -> None:
    case = ready(model, devices)
    plans = random_plans(case, 30)
    fast = [ordered_ns(case.model(plan), ordering_of(case.model(plan), case.problem, plan)) for plan in plans]
    full = [case.timeline(plan).step_ns for plan in plans]
    assert len(plans) == 30
    assert spearman(fast, full) >= 0.98


def test_an_ordering_becomes_the_plan_that_it_came_from() -> None:
    case = ready(*EXPERTS)
    for plan in random_plans(case, 5):
        model = case.model(plan)
        ordering = ordering_of(model, case.problem, plan)
        again = ordering_of(model, case.problem, plan_of(model, case.problem, plan, ordering))
        assert all((a == b).all() for a, b in zip(ordering.all(), again.all(), strict=True))


def test_an_ordering_that_would_wait_for_ever_takes_infinitely_long() -> None:
    case = ready(*DENSE)
    plan = run_policy("ring", case.problem, {})
    last = case.problem.segments[-1].order[-1]
    late = replace(plan, rings=tuple(replace(ring, begin=last) for ring in plan.rings))
    model = case.model(late)
    assert ordered_ns(model, ordering_of(model, case.problem, late)) == float("inf")
    with pytest.raises(Stuck):
        traced_ns(record(case.program(late), case.setting.machine), case.setting.machine)


def test_tasks_in_other_processes_give_the_same_outcomes() -> None:
    case = setting(*DENSE)
    plan = run_policy("ring", ready(*DENSE).problem, {})
    tasks = [Task(case, plan, seed, 300) for seed in range(3)]
    with executor("local", jobs=2) as run:
        assert list(run.map(improve, tasks)) == [improve(task) for task in tasks]


def test_the_compilers_cycles_and_another_routing_count_alike() -> None:
    """Of a profile the edges of loops differ by a hundred cycles."""
    request = ScheduleOptions(target="tpu7x:2x2x4", devices=32, context=2048, wire="bf16").request(load_spec("kimi-k3"))
    priced = Machine.of(request.target, read_profile("kimi-k3-tpu7x"))
    case = Prepared(Setting(request.spec, request.shape, request.target, priced, Load(parse_routing("zipf:1.1"))))
    plan = run_policy("ring", case.problem, {"slot_mib": 4.0})
    fast = ordered_ns(case.model(plan), ordering_of(case.model(plan), case.problem, plan))
    assert fast == pytest.approx(case.timeline(plan).step_ns, rel=5e-4)
    unpriced = simulate(case.program(plan), Machine.of(request.target)).step_ns
    assert abs(fast / unpriced - 1.0) > 2e-3
