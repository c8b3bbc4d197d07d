"""The critical path of a simulated step, walked back from its end through what every wait waited for.

From the end the path follows the core back to the last wait that stalled; there it goes on to the flight that ended
the stall, from its arrival back to when it was started; and from that start on it follows the core again. So every ns
of the step is on it once: shortening what is not on it does not shorten the step, but for what shares the HBM with it.

A transfer of the HBM that shared it with others has parts of its own need and of what sharing or queueing added; a
message those of its latency, of the link, of what went before it on the link, and of the peer's lateness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from schedc.cost.trace import Executed, Flight, Trace

Cause = Literal[
    "computation", "issue", "HBM latency", "HBM transfer", "HBM shared", "link latency", "link transfer", "link queue",
    "late peer",
]  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """A part of the path. `what` is an operation's kind; if a `flight` is on its way, that one in words."""

    cause: Cause
    what: str
    phase: str
    began: float
    ended: float
    iteration: tuple[str, int] | None
    flight: Flight | None = None

    @property
    def ns(self) -> float:
        return self.ended - self.began


def critical_path(trace: Trace, step_ns: float) -> tuple[Segment, ...]:
    """From the beginning to the end; their sum is the step."""
    return tuple(segment for segment in _backwards(trace, step_ns) if segment.ns > 0)[::-1]


def _backwards(trace: Trace, step_ns: float) -> Iterator[Segment]:
    time, place = step_ns, len(trace.executed) - 1
    while place >= 0:
        done = trace.executed[place]
        yield Segment("issue", "control", done.phase, min(done.ended, time), time, done.iteration)
        time = min(done.ended, time)
        flight = done.cause
        if flight is None:
            yield _on_core(done, time)
            time, place = min(done.began, time), place - 1
            continue
        yield from _in_flight(flight, done)
        time, place = flight.issued, min(flight.starter, place)
        if flight.starter >= place and trace.executed[place] is done:  # a barrier: its own signals go before
            yield Segment("issue", done.name, done.phase, done.began, time, done.iteration)
            time, place = done.began, place - 1
    yield Segment("issue", "control", "", 0.0, time, None)


def _on_core(done: Executed, until: float) -> Segment:
    cause: Cause = "computation" if done.computes else "issue"
    return Segment(cause, done.name, done.phase, min(done.began, until), until, done.iteration)


def _in_flight(flight: Flight, waiting: Executed) -> Iterator[Segment]:
    """The last part first."""

    def part(cause: Cause, began: float, ended: float) -> Segment:
        return Segment(
            cause, _in_words(flight), waiting.phase, began, max(began, ended), waiting.iteration, flight=flight
        )

    if flight.lane == "hbm":
        needed = max(flight.began, flight.ended - flight.alone)
        came = min(flight.issued + flight.latency, flight.began)
        yield part("HBM transfer", needed, flight.ended)
        yield part("HBM shared", came, needed)
        yield part("HBM latency", flight.issued, came)
        return
    on_time = flight.ended - flight.late
    left = on_time - flight.latency
    yield part("late peer", on_time, flight.ended)
    yield part("link latency", left, on_time)
    yield part("link transfer", flight.began, left)
    yield part("link queue", flight.issued, flight.began)


def _in_words(flight: Flight) -> str:
    match flight.lane:
        case "hbm":
            source, _, target = flight.name.partition(" -> ")
            _, _, chosen = target.partition(" of ")
            return f"transfer of {source}" + (f" for {chosen}" if chosen else "")
        case "link":
            source = flight.name.partition(" -> ")[0]
            return f"exchange of {source}" + (f" with rank {flight.peer}" if flight.peer >= 0 else "")
        case "signal":
            return f"signal {flight.name}"
        case "barrier":
            return "barrier"


@dataclass(frozen=True)
class Stretch:
    """Consecutive segments on the core, or of one flight: `what`, by cause or phase, the largest first."""

    what: str
    ns: float


@dataclass(frozen=True)
class Period:
    """One iteration of the outermost loop that has most of the path, in the middle of its trips, in words."""

    name: str
    ns: float
    stretches: tuple[Stretch, ...]


def shares(path: tuple[Segment, ...]) -> dict[str, float]:
    """ns by cause, the largest first."""
    return _summed((segment.cause, segment.ns) for segment in path)


def largest_parts(path: tuple[Segment, ...], most: int = 8) -> dict[str, float]:
    """ns by kind of computation or what is on its way, in whichever phase: the `most` largest."""
    parts = _summed((segment.what, segment.ns) for segment in path if segment.what != "control")
    return dict(list(parts.items())[:most])


def _summed(parts: Iterator[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, ns in parts:
        sums[name] = sums.get(name, 0.0) + ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def period(path: tuple[Segment, ...], least: float = 0.002) -> Period | None:
    """The period in words; stretches of less than `least` of it are left out. None without a loop."""
    loops = _summed((segment.iteration[0], segment.ns) for segment in path if segment.iteration is not None)
    if not loops:
        return None
    counter = next(iter(loops))
    trips = sorted({s.iteration[1] for s in path if s.iteration is not None and s.iteration[0] == counter})
    chosen = (counter, trips[len(trips) // 2])
    inside = [segment for segment in path if segment.iteration == chosen]
    total = sum(segment.ns for segment in inside)
    long = [stretch for stretch in _stretches(inside) if stretch.ns >= least * total]
    return Period(f"{counter} = {chosen[1]}", total, tuple(long))


def _stretches(segments: list[Segment], phases: int = 3) -> Iterator[Stretch]:
    """Of a stretch on the core the `phases` that take most, in the order in which they come first."""
    for on_its_way, several in groupby(segments, key=lambda segment: segment.what if segment.flight else None):
        parts = list(several)
        total = sum(segment.ns for segment in parts)
        if on_its_way is not None:
            causes = _summed((segment.cause, segment.ns) for segment in parts)
            yield Stretch(f"{on_its_way} ({next(iter(causes))})", total)
            continue
        sums = _summed((segment.phase, segment.ns) for segment in parts)
        chief = set(list(sums)[:phases])
        names = [phase for phase in dict.fromkeys(segment.phase for segment in parts) if phase in chief]
        yield Stretch(", ".join(names), total)
