"""A policy of chance: any order that the dependences allow, any point of issue, any deferral that still runs."""

from dataclasses import replace
from random import Random

import networkx as nx

from schedc.schedule.defer import deferred, refilling
from schedc.schedule.depends import issue_points
from schedc.schedule.flow import ordered
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies.ring import ring


def any_plan(problem: Problem, *, seed: int = 0, slot_mib: float = 2.0, small_cache: int = 0) -> Plan:
    """`small_cache`: with the smallest tiles of the cache. Slots for the vectors of all layers of a trip at once."""
    random = Random(seed)
    depth, at_once, kv_slots = random.choice((3, 6)), random.choice((1, 2)), random.choice((2, 3, 4))
    plan = ring(problem, depth=depth, slot_mib=slot_mib, experts_at_once=at_once, kv_slots=kv_slots)
    order, issue = {}, {}
    for segment in problem.segments:
        phases = problem.depends[segment.name].subgraph(segment.order)
        weight = {phase: random.random() for phase in segment.order}
        order[segment.name] = tuple(nx.lexicographical_topological_sort(phases, key=weight.__getitem__))
        for prefetch in problem.prefetches:
            if prefetch.latest in segment.order:
                points = issue_points(problem.depends[segment.name], order[segment.name], prefetch.name)
                issue[prefetch.name] = random.choice(points)
    rings = tuple(replace(r, slots=8, ahead=8) if r.name == "small" else r for r in plan.rings)
    plan = replace(plan, rings=rings, order=order, issue=issue)
    for segment in ordered(problem, plan):
        refills = refilling(problem, segment, plan)
        if len(refills) > 1:
            at = random.randrange(1, len(refills))
            plan = deferred(problem, plan, refills[:at], refills[at])
    return replace(plan, kv_tokens=problem.kv_tokens[-1]) if small_cache else plan
