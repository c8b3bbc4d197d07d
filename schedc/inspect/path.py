"""The critical path and the idle HBM of a step as spans on its axis of time, as `schedc/cost` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from schedc.cost.critical import Segment, critical_path
from schedc.cost.idle import Cause, idle_parts
from schedc.inspect.history import History

CAUSES: dict[Cause, str] = {
    "latency": "on its way: started, not yet at the HBM",
    "address": "nothing started: the next address was not known yet",
    "data": "nothing started: what is moved next was not there yet",
    "slots": "nothing started: the next slot was still in use",
    "late": "nothing started: the next start could have been earlier in the program",
    "end": "nothing is left to be started",
}


@dataclass(frozen=True, slots=True)
class Idle:
    """From `began` to `ended` (ns)."""

    cause: Cause
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the critical path from `began` to `ended` (ns): the core at work, or what it waits for on its way.

    `cause` is that of `cost.critical`, `core` for the core's work. `transfer` is one of `History.transfers`.
    """

    kind: Literal["core", "hbm", "link"]
    cause: str
    what: str
    began: float
    ended: float
    transfer: int | None = None


def idle_times(history: History) -> tuple[Idle, ...]:
    """Every time in which no transfer has the HBM, in order, by its cause."""
    found: list[Idle] = []
    for began, ended, cause in sorted(idle_parts(history.trace, history.timeline.step_ns)):
        if found and found[-1].cause == cause and found[-1].ended == began:
            found[-1] = replace(found[-1], ended=ended)
        elif ended > began:
            found.append(Idle(cause, began, ended))
    return tuple(found)


def path_of(history: History) -> tuple[Part, ...]:
    """From 0 to the end of the step without a gap; what the core does in between is one part."""
    transfers = {id(t.flight): index for index, t in enumerate(history.transfers)}
    parts: list[Part] = []
    for part in _parts(critical_path(history.trace, history.timeline.step_ns), transfers):
        if parts and part.kind == parts[-1].kind == "core":
            parts[-1] = replace(parts[-1], ended=part.ended)
        else:
            parts.append(part)
    return tuple(parts)


def _parts(path: tuple[Segment, ...], transfers: dict[int, int]) -> Iterator[Part]:
    for segment in path:
        flight = segment.flight
        if flight is None:
            yield Part("core", "core", "the core at work", segment.began, segment.ended)
        else:
            kind: Literal["hbm", "link"] = "hbm" if flight.lane == "hbm" else "link"
            yield Part(kind, segment.cause, segment.what, segment.began, segment.ended, transfers.get(id(flight)))
