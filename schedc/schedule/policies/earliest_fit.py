"""Greedy list scheduling: phases as soon as their inputs are there, transfers as soon as a buffer is free.

Phases are listed by their longest way to the end of a layer, so that what does not depend on an exchange is computed
while it is under way. Tiles pass through one ring in the order of use, which is as deep as VMEM holds: then each starts
at the first moment at which its buffer fits. Where a ring of the usual depth, or the order in which phases are lowered,
is predicted to be faster, that is taken. Source: Graham, Bounds on multiprocessing timing
anomalies, SIAM J. Appl. Math. 17 (1969); durations are the prediction's.
"""

from collections.abc import Iterator
from dataclasses import replace

from schedc.schedule.defer import first_that_fits
from schedc.schedule.depends import issue_points
from schedc.schedule.flow import ring_faults
from schedc.schedule.listing import list_order
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies.ring import DEEPEST, ring

VECTOR_SLOTS = (2, 3, 4, 6)
"""Layers' vectors at once: another order may begin a layer's norm while one of the last still needs its own."""


def earliest_fit(
    problem: Problem,
    *,
    deepest: int = 16,
    slot_mib: float = 2.0,
    expert_slots: int = 0,
    expert_mib: float = 4.0,
    kv_slots: int = 3,
) -> Plan:
    """`deepest`: at most so many slots. The other settings are those of `ring`."""
    if deepest < 2:
        raise ValueError(f"deepest is {deepest}; it must be 2 or more")
    base = ring(
        problem,
        depth=deepest,
        slot_mib=slot_mib,
        expert_slots=expert_slots,
        expert_mib=expert_mib,
        kv_slots=kv_slots,
    )
    deep, usual = (first_that_fits(problem, _depths(base, slots)) for slots in (deepest, min(deepest, DEEPEST)))
    lowered = _fastest(problem, deep, *(() if deep == usual else (usual,)))
    listed = _listed(problem, lowered)
    return lowered if listed is None or not problem.fits(listed) else _fastest(problem, listed, lowered)


def _fastest(problem: Problem, first: Plan, *others: Plan) -> Plan:
    """As predicted; the first if nothing is."""
    return first if problem.evaluate is None or not others else min((first, *others), key=problem.evaluate)


def _depths(plan: Plan, deepest: int) -> Iterator[Plan]:
    weights, *others = plan.rings
    for slots in range(deepest, 1, -1):
        yield replace(plan, rings=(replace(weights, slots=slots, ahead=slots), *others))
    fewer = tuple(replace(r, slots=min(r.slots, 2), ahead=min(r.ahead, 2)) for r in plan.rings)
    yield replace(plan, rings=fewer)


def _listed(problem: Problem, plan: Plan) -> Plan | None:
    """The plan with its phases in the order of the list; None if that changes nothing, or cannot be."""
    listed = {segment.name: list_order(problem, segment) for segment in problem.segments}
    order = {
        segment.name: listed[segment.name] for segment in problem.segments if listed[segment.name] != segment.order
    }
    issue = dict(plan.issue)
    for segment in problem.segments:
        if segment.name not in order:
            continue
        for prefetch in problem.prefetches:
            if prefetch.latest in segment.order:
                points = issue_points(problem.depends[segment.name], order[segment.name], prefetch.name)
                if not points:
                    return None
                issue[prefetch.name] = points[0]
    for slots in VECTOR_SLOTS if order else ():
        rings = tuple(replace(r, slots=slots, ahead=slots) if r.name == "small" else r for r in plan.rings)
        made = replace(plan, rings=rings, order=order, issue=issue)
        if not ring_faults(problem, made):
            return made
    return None
