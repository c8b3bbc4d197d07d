"""Every transfer starts as early as a ratio of overlap to its own time asks for, in the order of use.

A transfer of t ns is started where the computation up to its use takes `preferred` · t, and not later than `least` · t
if the ring has slots for that. The ring is as deep as the tile that needs most; phases whose tiles would start their
successors earlier than preferred leave that to a later phase. The time that HBM is busy with earlier transfers is not
looked at. Source: the prefetch interval picker of XLA's memory-space assignment (openxla/xla, memory_space_assignment/
prefetch_interval_picker.h), whose tools take 0.8 and 1.5 as the least and the preferred ratio, and at most 10 times the
time to fill the memory, which no step here reaches. XLA keeps copies in the order of their use too, and leaves in HBM
what cannot have its least overlap; here everything must come, so that the ring has two slots then.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from schedc.schedule.clock import Use, spans, uses
from schedc.schedule.defer import first_that_fits
from schedc.schedule.flow import ring_faults
from schedc.schedule.plan import Plan, Problem, Ring
from schedc.schedule.policies.ring import ring

DEEPEST = 64
"""Slots, so that a phase of no known time does not ask for all of them."""


def xla_ratio(
    problem: Problem, *, least: float = 0.8, preferred: float = 1.5, slot_mib: float = 2.0, expert_mib: float = 4.0
) -> Plan:
    """`preferred`, or less where VMEM does not hold it, but at least `least`."""
    if not 0 < least <= preferred < inf:
        raise ValueError(f"least is {least:g} and preferred {preferred:g}; they must be above 0, and least no more")
    base = ring(problem, depth=2, slot_mib=slot_mib, expert_mib=expert_mib)
    return first_that_fits(problem, _plans(problem, base, least, preferred))


def _plans(problem: Problem, base: Plan, least: float, preferred: float) -> Iterator[Plan]:
    weights, *others = base.rings
    deepest, at_least = (max(2, _ahead(problem, base, ratio)) for ratio in (preferred, least))
    for slots in sorted({*range(at_least, deepest + 1), 2}, reverse=True):
        plan = replace(base, rings=(replace(weights, slots=slots, ahead=slots), *others))
        later = {} if slots < deepest else _later(problem, plan, preferred)
        put_off = replace(plan, deferred=later, issue={**base.issue, **_issue(problem, preferred)})
        yield replace(put_off, deferred={}) if ring_faults(problem, put_off) else put_off


def _ahead(problem: Problem, plan: Plan, ratio: float) -> int:
    """How many tiles ahead the one must be started that needs most."""
    most = 1
    for segment in problem.segments:
        tiles = list(uses(problem, plan, plan.rings[0], segment, min(segment.trips, 2)))
        for number, tile in enumerate(tiles):
            wanted = tile.start - ratio * problem.transfer.ns(tile.rows)
            ahead = next((a for a in range(1, number + 1) if tiles[number - a].end <= wanted), 0)
            most = max(most, ahead)
    return min(most, DEEPEST)


def _later(problem: Problem, plan: Plan, ratio: float) -> dict[str, str]:
    """Phase → the last one at whose start all that its tiles let start still has the preferred overlap."""
    found: dict[str, str] = {}
    for segment in problem.segments:
        trips = min(segment.trips, 3)
        tiles = list(uses(problem, plan, plan.rings[0], segment, trips))
        first = [span for span in spans(problem, segment, trips) if span.trip == 0]
        limit = inf
        for phase, deadline in reversed(_deadlines(problem, plan.rings[0], tiles, ratio)):
            limit = min(limit, deadline)
            at = next(index for index, span in enumerate(first) if span.phase == phase)
            later = [span for span in first[at + 1 :] if span.start <= limit and span.phase in segment.order]
            if later and limit < inf:
                found[phase] = later[-1].phase
            limit = min(limit, later[-1].start if later and limit < inf else first[at].start)
    return found


def _deadlines(problem: Problem, ring_: Ring, tiles: list[Use], ratio: float) -> list[tuple[str, float]]:
    """Of the phases of the first trip: until when all tiles they let start must have been started."""
    found: dict[str, float] = {}
    for number, tile in enumerate(tiles):
        if tile.span.trip == 0:
            target = tiles[number + ring_.ahead] if number + ring_.ahead < len(tiles) else None
            deadline = inf if target is None else target.start - ratio * problem.transfer.ns(target.rows)
            found[tile.span.phase] = min(found.get(tile.span.phase, inf), deadline)
    return list(found.items())


def _issue(problem: Problem, ratio: float) -> dict[str, str]:
    """Of what is transferred outside the streams, the last phase that leaves the preferred overlap."""
    found = {}
    for segment in problem.segments:
        start = {span.phase: span.start for span in spans(problem, segment, 1)}
        for prefetch in problem.prefetches:
            if prefetch.latest in segment.order and prefetch.rows:
                window = segment.order[
                    segment.order.index(prefetch.earliest) : segment.order.index(prefetch.latest) + 1
                ]
                wanted = start[prefetch.latest] - ratio * problem.transfer.ns(prefetch.rows)
                found[prefetch.name] = [p for p in window if start[p] <= wanted or p == window[0]][-1]
    return found
