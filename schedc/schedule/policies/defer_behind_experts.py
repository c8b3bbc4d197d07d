"""The ring, whose refills let the chosen experts go first.

Before its experts are known the ring would go on to start tiles that are needed much later, and the experts, whose
addresses come last, would queue behind them. Here the refills of the feed-forward that HBM would not have come to when
its experts are known are started right behind the first tiles of the experts, unless the step is predicted to be slower
for it. Source: the published Muse Spark kernel, where that is worth 14 µs a step.
"""

from schedc.schedule.clock import spans, uses
from schedc.schedule.defer import deferred, refilling
from schedc.schedule.plan import Plan, Problem, SegmentInfo
from schedc.schedule.policies.ring import ring


def defer_behind_experts(
    problem: Problem,
    *,
    depth: int = 0,
    slot_mib: float = 2.0,
    expert_slots: int = 0,
    expert_mib: float = 4.0,
    experts_at_once: int = 1,
    phases: int = 0,
) -> Plan:
    """`phases`: of how many before the experts the refills are deferred; 0: of those that HBM comes to only then.

    Those are deferred if that pays. The other settings are those of `ring`.
    """
    plan = base = ring(
        problem,
        depth=depth,
        slot_mib=slot_mib,
        expert_slots=expert_slots,
        expert_mib=expert_mib,
        experts_at_once=experts_at_once,
    )
    half_of = {stream.name: stream.half for stream in problem.streams}
    for segment in problem.segments:
        refills = set(refilling(problem, segment, plan))
        stream_of = {phase.name: phase.stream for phase in segment.phases}
        since = 0
        for selection in problem.selections:
            if selection.name not in segment.order:
                continue
            until = plan.issue.get(selection.name, selection.earliest)
            before = [phase for phase in segment.order[since : segment.order.index(until)] if phase in refills]
            mixer = [index for index, phase in enumerate(before) if half_of.get(stream_of[phase] or "") == "mixer"]
            before = before[mixer[-1] + 1 if mixer else 0 :]
            under_way = phases or _under_way(problem, plan, segment, before, until)
            plan = deferred(problem, plan, before[len(before) - under_way :], until)
            since = segment.order.index(selection.name)
    if phases or problem.evaluate is None or plan == base:
        return plan
    return min(plan, base, key=problem.evaluate)


def _under_way(problem: Problem, plan: Plan, segment: SegmentInfo, before: list[str], until: str) -> int:
    """Of how many phases HBM would give more of its time to the refills behind the moment `until` than before it."""
    if not problem.transfer.row_ns or not any(problem.durations.values()):
        return len(before)
    trips = min(segment.trips, 2)
    known = next(span.start for span in reversed(spans(problem, segment, trips)) if span.phase == until)
    busy, later = 0.0, set()
    for tile in uses(problem, plan, plan.rings[0], segment, trips):
        begin = max(busy, tile.end)
        busy = begin + problem.transfer.ns(tile.rows)
        if tile.span.trip == trips - 1 and busy - known > known - begin:
            later.add(tile.span.phase)
    return next((count for count, phase in enumerate(reversed(before)) if phase not in later), len(before))
