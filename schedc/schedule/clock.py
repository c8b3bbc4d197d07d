"""When phases would run if nothing had to be waited for but the peers: what transfers can overlap with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedc.schedule.plan import Plan, Problem, Ring, SegmentInfo


@dataclass(frozen=True)
class Span:
    """A phase in a trip of a segment, in ns from the start of the segment."""

    phase: str
    trip: int
    start: float
    end: float


@dataclass(frozen=True)
class Use:
    """A tile of `rows` rows is used from `start` to `end` in a span."""

    span: Span
    rows: int
    start: float
    end: float


def spans(problem: Problem, segment: SegmentInfo, trips: int) -> list[Span]:
    """So many trips of a segment. A phase takes its time of the core and, if it waits for peers, what that takes."""
    found, now = [], 0.0
    nodes = problem.depends[segment.name].nodes
    for trip in range(trips):
        for phase in segment.phases:
            waits = phase.each is None and bool(nodes[phase.name]["awaits"])
            stall = problem.stalls.get(phase.name, 0.0) if waits else 0.0
            end = now + stall + problem.durations.get(phase.name, 0.0)
            found.append(Span(phase.name, trip, now, end))
            now = end
    return found


def uses(problem: Problem, plan: Plan, ring: Ring, segment: SegmentInfo, trips: int) -> Iterator[Use]:
    """The tiles of a ring's matrices in so many trips, in their order."""
    streams = {stream.name: stream for stream in problem.streams}
    of_phase = {phase.name: phase.stream for phase in segment.phases if phase.each is None and phase.vectors is None}
    for span in spans(problem, segment, trips):
        name = of_phase.get(span.phase)
        if name is None or name not in ring.streams:
            continue
        stream = streams[name]
        tiles = -(-stream.units // plan.tile_units[name])
        each = (span.end - span.start) / tiles
        for tile in range(tiles):
            rows = plan.tile_units[name] * stream.unit_rows
            yield Use(span, rows, span.start + tile * each, span.start + (tile + 1) * each)
