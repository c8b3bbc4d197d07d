"""Why the HBM of a simulated step has nothing to do, by the phase the core is in.

The HBM is idle while no transfer has it. If transfers are on their way, that is `latency`. If there are none, the next
one that the core starts says why it was not started earlier, which is what it had been waiting for longest:

- `address`: scalars that its address or its being started depends on were not set yet, such as a router's choice;
- `data`: what it moves was not there yet, a result to be stored or rows that were stored before;
- `slots`: what it overwrites was still to be read, or another transfer there had not ended;
- `late`: nothing held it but its place in the program;
- `end`: there is no next one.

Each part of an idle time is given to the first of these that held the next start then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from schedc.cost.rows import NEVER, Mark, RowMarks
from schedc.cost.trace import Trace

Cause = Literal["latency", "address", "data", "slots", "late", "end"]
CAUSES: tuple[Cause, ...] = ("latency", "address", "data", "slots", "late", "end")


@dataclass(frozen=True)
class Idle:
    """ns of a phase, over all its executions, in which the HBM is idle for `cause`."""

    phase: str
    cause: Cause
    ns: float


@dataclass(frozen=True)
class _Holds:
    """When a start was issued, and until when each cause held it."""

    issued: float
    address: float
    data: float
    slots: float


def idle_times(trace: Trace, step_ns: float) -> tuple[Idle, ...]:
    """In the order of phases, then of causes. Their sum is the time in which the HBM is idle."""
    return _by_phase(idle_parts(trace, step_ns), trace)


def idle_parts(trace: Trace, step_ns: float) -> list[tuple[float, float, Cause]]:
    """(begin, end, cause) of every time in which the HBM is idle: first those with something on its way."""
    flights = sorted(trace.flights("hbm"), key=lambda flight: flight.issued)
    asked = _united((flight.issued, flight.ended) for flight in flights)
    busy = _united(sorted((flight.began, flight.ended) for flight in flights))
    holds = sorted(_holds(trace), key=lambda hold: hold.issued)
    parts: list[tuple[float, float, Cause]] = []
    for low, high in asked:
        parts += [(begin, end, "latency") for begin, end in _gaps(busy, low, min(high, step_ns))]
    issues = [hold.issued for hold in holds]
    for low, high in _gaps(asked, 0.0, step_ns):
        at = bisect_right(issues, high - 1e-9)
        parts += _split(low, high, holds[at] if at < len(holds) else None)
    return parts


def _holds(trace: Trace) -> Iterator[_Holds]:
    written, touched, scalars = RowMarks(), RowMarks(), dict[str, Mark]()
    for place, done in enumerate(trace.executed):
        ended = done.ended if done.flight is None else max(done.ended, done.flight.ended)
        if done.flight is not None and done.flight.lane == "hbm":
            yield _Holds(
                done.flight.issued,
                max((scalars.get(name, NEVER)[0] for name in done.needs), default=0.0),
                max((written.latest(span)[0] for span in done.reads), default=0.0),
                max((touched.latest(span)[0] for span in done.writes), default=0.0),
            )
        for span in done.writes:
            written.put(span, (ended, place))
        for span in (*done.reads, *done.writes):
            touched.raise_to(span, (ended, place))
        for name in done.sets:
            scalars[name] = (done.ended, place)


def _split(low: float, high: float, hold: _Holds | None) -> Iterator[tuple[float, float, Cause]]:
    if hold is None:
        yield low, high, "end"
        return
    held: tuple[tuple[float, Cause], ...] = (
        (hold.address, "address"), (hold.data, "data"), (hold.slots, "slots"), (high, "late")
    )  # fmt: skip
    for until, cause in held:
        end = min(until, high)
        if end > low:
            yield low, end, cause
            low = end


def _united(intervals: Iterator[tuple[float, float]] | list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of intervals by their begin: disjoint ones, by their begin."""
    found: list[tuple[float, float]] = []
    for low, high in intervals:
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _gaps(intervals: list[tuple[float, float]], low: float, high: float) -> Iterator[tuple[float, float]]:
    """What of low..high is in none of the disjoint intervals."""
    at = max(0, bisect_right(intervals, (low, float("inf"))) - 1)
    while at < len(intervals) and intervals[at][0] < high:
        begin, end = intervals[at]
        if begin > low:
            yield low, begin
        low = max(low, end)
        at += 1
    if high > low:
        yield low, high


def _by_phase(parts: list[tuple[float, float, Cause]], trace: Trace) -> tuple[Idle, ...]:
    times = [time for time, _ in trace.phases]
    names = [name for _, name in trace.phases]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    sums: dict[tuple[str, Cause], float] = {}
    for low, high, cause in parts:
        at = max(0, bisect_right(times, low) - 1)
        while low < high:
            end = min(high, times[at + 1]) if at + 1 < len(times) else high
            sums[names[at], cause] = sums.get((names[at], cause), 0.0) + end - low
            low, at = end, at + 1
    key = lambda pair: (order[pair[0]], CAUSES.index(pair[1]))  # noqa: E731
    return tuple(Idle(phase, cause, sums[phase, cause]) for phase, cause in sorted(sums, key=key) if sums[phase, cause])
