"""What is wrong with the order, the deferred refills and the beginnings of a plan, before a program is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from schedc.schedule.depends import issue_points, order_faults
from schedc.schedule.flow import ring_faults
from schedc.schedule.plan import Plan, Problem, SegmentInfo


def freedom_faults(problem: Problem, plan: Plan) -> list[str]:
    """All at once; those of the flow of tiles only where the rest is right."""
    faults = [*_permutations(problem, plan), *_deferrals(problem, plan), *_beginnings(problem, plan)]
    if not faults:
        faults += order_faults(problem.depends, plan.order) if plan.order else []
        faults += _issues(problem, plan)
    return faults or ring_faults(problem, plan)


def _permutations(problem: Problem, plan: Plan) -> Iterator[str]:
    segments = {segment.name: segment for segment in problem.segments}
    for name, order in plan.order.items():
        if name not in segments:
            yield f"order names {name}, which is not a segment; there are {', '.join(segments)}"
            continue
        wanted, given = Counter(segments[name].order), Counter(order)
        for text, names in (("lacks", wanted - given), ("has too many of", given - wanted)):
            if names:
                yield f"order[{name}] {text} {', '.join(names)}; it must have every phase of the segment once"


def _deferrals(problem: Problem, plan: Plan) -> Iterator[str]:
    place = {
        phase: (segment.name, index)
        for segment in problem.segments
        for index, phase in enumerate(_order(segment, plan))
    }
    streams = {p.name: p.vectors or p.stream for segment in problem.segments for p in segment.phases if p.each is None}
    ring_of = {name: ring.name for ring in plan.rings for name in ring.streams}
    until: dict[str, tuple[str, tuple[str, int]]] = {}
    for phase, later in plan.deferred.items():
        if phase not in place or streams.get(phase) is None:
            yield f"deferred names {phase}, which is no phase that streams; those of chosen members are not deferred"
        elif later not in place or place[later][0] != place[phase][0] or place[later] <= place[phase]:
            yield f"deferred[{phase}] is {later}; it must be a later phase of segment {place[phase][0]}"
        elif not _is_last_reader(problem, plan, phase, streams):
            yield f"deferred names {phase}, but {streams[phase]} is read by a later phase, which lets its slot go"
        else:
            until[phase] = later, place[later]
    for phase, (later, end) in until.items():
        for other in place:
            between = place[phase] < place[other] < end
            ring = ring_of.get(streams.get(other) or "")
            if between and ring == ring_of.get(streams[phase] or "") and until.get(other, ("", place[other]))[1] < end:
                yield (
                    f"deferred[{phase}] is {later}, and the refills of {other}, which come behind in ring {ring}, "
                    f"would be started first; defer them to {later} too"
                )


def _is_last_reader(problem: Problem, plan: Plan, phase: str, streams: dict[str, str | None]) -> bool:
    for segment in problem.segments:
        order = _order(segment, plan)
        if phase in order:
            return not any(streams.get(later) == streams[phase] for later in order[order.index(phase) + 1 :])
    return False


def _beginnings(problem: Problem, plan: Plan) -> Iterator[str]:
    phases = {phase for segment in problem.segments for phase in segment.order}
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    for ring in plan.rings:
        if ring.begin is None:
            continue
        if chosen.intersection(ring.streams):
            yield f"ring {ring.name} of chosen members begins where issue says, not at begin={ring.begin}"
        elif ring.begin not in phases:
            yield f"ring {ring.name} begins at {ring.begin}, which is not a phase"


def _issues(problem: Problem, plan: Plan) -> Iterator[str]:
    """In another order a transfer has another window."""
    for segment in problem.segments:
        if segment.name not in plan.order:
            continue
        order = plan.order[segment.name]
        for prefetch in problem.prefetches:
            if prefetch.latest in order:
                at = plan.issue.get(prefetch.name, prefetch.latest)
                possible = issue_points(problem.depends[segment.name], order, prefetch.name)
                if at not in possible:
                    where = f"it must be from {possible[0]} to {possible[-1]}" if possible else "it can be nowhere"
                    yield f"issue[{prefetch.name}] is {at}; in this order {where}"


def _order(segment: SegmentInfo, plan: Plan) -> tuple[str, ...]:
    return plan.order.get(segment.name, segment.order)
