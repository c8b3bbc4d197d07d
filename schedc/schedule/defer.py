"""Putting refills off: as many as the ring allows, and the first plan of several that fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from schedc.schedule.flow import ordered, ring_faults
from schedc.schedule.plan import Plan, Problem, SegmentInfo


def deferred(problem: Problem, plan: Plan, phases: Sequence[str], later: str) -> Plan:
    """The plan with the refills of `phases`, which stand in their order before `later`, put off to it.

    From the last of them on: where its ring would not get a tile in time without the refills of a phase, those of that
    phase and of the ones before stay where they are.
    """
    for phase in reversed(phases):
        more = replace(plan, deferred={**plan.deferred, phase: later})
        if ring_faults(problem, more):
            break
        plan = more
    return plan


def refilling(problem: Problem, segment: SegmentInfo, plan: Plan) -> tuple[str, ...]:
    """The phases after which matrices of the whole step's rings are refilled, in the order of the plan."""
    matrices = {stream.name for stream in problem.matrices()}
    of_plan = next(other for other in ordered(problem, plan) if other.name == segment.name)
    return tuple(p.name for p in of_plan.phases if p.each is None and p.stream in matrices and p.vectors is None)


def first_that_fits(problem: Problem, plans: Iterable[Plan]) -> Plan:
    """The last one if none does: then the compiler says what is missing."""
    plan = None
    for plan in plans:
        if problem.fits(plan):
            break
    assert plan is not None
    return plan
