"""The one-machine bound: between two exchanges the core does everything, one after the other."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import round_machine
from test_links import DECLARED, TO_THE_SIBLING

from schedc.cost.dependence import dependences, longest_chain
from schedc.cost.machine import Machine
from schedc.cost.one_core import Job, jackson, one_core_ns
from schedc.cost.traced import simulate_traced
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

JOBS = st.lists(st.builds(Job, *(st.integers(0, 20) for _ in range(3))), min_size=1, max_size=6)


def best_of_all_orders(jobs: list[Job]) -> float:
    return min(ended(order) for order in permutations(jobs))


def ended(order: tuple[Job, ...]) -> float:
    now = latest = 0.0
    for job in order:
        now = max(now, job.head) + job.work
        latest = max(latest, now + job.tail)
    return latest


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JOBS)
def test_no_order_of_jobs_beats_jacksons_schedule(jobs: list[Job]) -> None:
    bound = jackson(jobs)
    assert bound <= best_of_all_orders(jobs)
    assert bound >= max(job.head + job.work + job.tail for job in jobs)
    assert bound >= min(job.head for job in jobs) + sum(job.work for job in jobs) + min(job.tail for job in jobs)


def test_work_may_be_interrupted_by_what_has_a_longer_tail() -> None:
    """To 1 the first, to 3 the second, whose tail ends at 12, and to 6 the rest of the first, whose tail ends at 14."""
    jobs = [Job(0, 4, 8), Job(1, 2, 9)]
    assert jackson(jobs) == 14
    assert best_of_all_orders(jobs) == 15


def test_what_lies_between_two_messages_is_done_by_one_core() -> None:
    """Four products of 50 need what has come, and none the other; what is sent next needs all four."""
    come = [TO_THE_SIBLING, "wait arrived rows=8"]
    products = [f"compute zero(x: read theirs[0 +: 8], out: write mine[{2 * part} +: 2])" for part in range(4)]
    lines = [DECLARED, "compute zero(out: write mine[0 +: 8])", *come, *products, *come, "}"]
    timeline = simulate_traced(parse_program("\n".join(lines)), round_machine())
    assert timeline.trace is not None
    known = dependences(timeline.trace)
    message = 10 + 80 + 200
    assert longest_chain(known).ns == 50 + message + 50 + message
    assert one_core_ns(known) == 50 + message + 4 * 50 + message


@pytest.mark.parametrize("policy", ["ring", "just_in_time", "earliest_fit"])
def test_no_policy_beats_the_bound_of_another(policy: str) -> None:
    """The order of the operations changes the bound by nothing that counts."""
    target = parse_target("tpu7x:2x2x1", 4)

    def simulated(policy: str) -> tuple[float, float]:
        program = schedule(load_spec("kimi-k3-mini"), StepShape(1, 256, devices=4), target, policy).program
        timeline = simulate_traced(program, Machine.of(target))
        assert timeline.trace is not None
        return timeline.step_ns, one_core_ns(dependences(timeline.trace))

    (_, bound), (step, own) = simulated("double_buffer"), simulated(policy)
    assert own == pytest.approx(bound, rel=0.01)
    assert bound <= step
