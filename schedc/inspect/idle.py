"""When the HBM moves nothing, and why."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from schedc.inspect.history import History

Cause = Literal["latency", "devices", "core"]
CAUSES: dict[Cause, str] = {
    "latency": "on its way: transfers are started, none has reached the HBM",
    "devices": "nothing asked for: the core waits for other devices",
    "core": "nothing asked for: the core computes or issues",
}


@dataclass(frozen=True, slots=True)
class Idle:
    """From `began` to `ended` (ns)."""

    cause: Cause
    began: float
    ended: float


def idle_times(history: History) -> tuple[Idle, ...]:
    """Every moment in which no transfer has the HBM, in order, by its cause."""
    hbm = [t for t in history.transfers if t.lane == "hbm"]
    busy = _merged(sorted((t.began, t.ended) for t in hbm))
    asked = _merged(sorted((t.issued, t.began) for t in hbm))
    waits = _merged(
        sorted(
            (w.reached, w.ended)
            for w in history.waits
            if w.blocked and (not w.took or any(history.transfers[t].lane == "link" for t in w.took))
        )
    )
    found: list[Idle] = []
    for began, ended in _gaps(busy, history.timeline.step_ns):
        for cause, first, last in _split(began, ended, asked, waits):
            if found and found[-1].cause == cause and found[-1].ended == first:
                found[-1] = Idle(cause, found[-1].began, last)
            else:
                found.append(Idle(cause, first, last))
    return tuple(found)


Times = list[tuple[float, float]]


def _merged(spans: Times) -> Times:
    found: Times = []
    for began, ended in spans:
        if found and began <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ended))
        elif ended > began:
            found.append((began, ended))
    return found


def _gaps(spans: Times, end: float) -> Iterator[tuple[float, float]]:
    at = 0.0
    for began, ended in spans:
        if began > at:
            yield at, began
        at = max(at, ended)
    if end > at:
        yield at, end


def _split(began: float, ended: float, asked: Times, waits: Times) -> Iterator[tuple[Cause, float, float]]:
    edges = {began, ended}
    for spans in (asked, waits):
        edges |= {time for span in _between(spans, began, ended) for time in span if began < time < ended}
    times = sorted(edges)
    for first, last in pairwise(times):
        middle = (first + last) / 2
        if _within(asked, middle):
            yield "latency", first, last
        elif _within(waits, middle):
            yield "devices", first, last
        else:
            yield "core", first, last


def _between(spans: Times, began: float, ended: float) -> Times:
    first = max(0, bisect_right(spans, (began, began)) - 1)
    return spans[first : bisect_left(spans, (ended, ended))]


def _within(spans: Times, time: float) -> bool:
    return any(began <= time < ended for began, ended in _between(spans, time, time + 1e-9))
