"""Policies of your own: thirty lines decide what is transferred when, and in what order a layer is computed.

    schedc compile smollm2-135m --policy examples/my_policy.py:late_cache --set depth=4 --no-check
    schedc compile kimi-k3-mini --devices 4 --policy examples/my_policy.py:waits_last --no-check

A policy gets a `Problem` (phases in order and what they depend on, weights to be streamed, other transfers with the
phases they may be issued at, what all that takes) and gives a `Plan`. Its keyword arguments are the settings of
`--set`. Allocation, proof and prediction come for free: a plan that cannot be built, does not fit VMEM or is not proven
safe is refused with the reason. docs/policies.md names every field.
"""

from dataclasses import replace

import networkx as nx

from schedc.schedule.defer import deferred, refilling
from schedc.schedule.depends import issue_points
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.policies.ring import ring


def late_cache(problem: Problem, *, depth: int = 6, kv_tokens: int = 64) -> Plan:
    """The ring of weights, with small cache tiles that are fetched as late as they may be.

    Small tiles leave VMEM to the weights; a late fetch leaves HBM to the projections that come before attention.
    Compare its predicted step with that of `ring`: on most models the wait for the first tile costs more than it wins.
    """
    plan = ring(problem, depth=depth)
    fitting = [tokens for tokens in problem.kv_tokens if tokens <= kv_tokens]
    return replace(
        plan,
        kv_tokens=max(fitting, default=min(problem.kv_tokens)),
        issue={prefetch.name: prefetch.latest for prefetch in problem.prefetches},
    )


def waits_last(problem: Problem, *, depth: int = 6) -> Plan:
    """Whatever can be computed before a wait for other devices is; the experts' transfers overtake one refill.

    Of the orders that the data allow, the one that takes a phase that waits for an exchange only when there is nothing
    else to do. Work that crosses an exchange may need more layers' vectors at once, hence their slots.
    """
    plan = ring(problem, depth=depth)
    rings = tuple(replace(r, slots=6, ahead=6) if r.name == "small" else r for r in plan.rings)
    order, issue = {}, dict(plan.issue)
    for segment in problem.segments:
        depends = problem.depends[segment.name]
        place = {phase: index for index, phase in enumerate(segment.order)}
        waits = {phase: bool(depends.nodes[phase]["awaits"]) for phase in segment.order}
        sort = nx.lexicographical_topological_sort
        order[segment.name] = tuple(sort(depends.subgraph(segment.order), lambda p, w=waits, i=place: (w[p], i[p])))
        for transfer in problem.prefetches:
            if transfer.latest in segment.order:
                issue[transfer.name] = issue_points(depends, order[segment.name], transfer.name)[0]
    plan = replace(plan, rings=rings, order=order, issue=issue)
    for selection in problem.selections:
        segment = next(s for s in problem.segments if selection.name in s.order)
        known, phases = issue[selection.name], order[segment.name]
        before = [p for p in refilling(problem, segment, plan) if phases.index(p) < phases.index(known)]
        plan = deferred(problem, plan, before[-1:], known)
    return plan
