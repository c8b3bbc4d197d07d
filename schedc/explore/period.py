"""One trip of a model's main loop as a problem of machine scheduling: work on the core, transfers, exchanges.

Times are whole ns. What a phase waits for inside itself is part of its work; what it waits for from another phase or
from the HBM is a condition on its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedc.errors import UserError
from schedc.explore.fast.model import Model
from schedc.explore.fast.trace import BURST, SEND, START, WAIT

TRIP = 1
"""Of those that are recorded: in the steady state."""


@dataclass(frozen=True)
class Tile:
    """A tile of a stream: its rows of VMEM, and ns of the HBM."""

    stream: int
    rows: int
    need_ns: int


@dataclass(frozen=True)
class Work:
    """A phase: by tile, its ns on the core (one if it streams nothing), and the transfers that it starts itself."""

    unit: int
    pieces_ns: tuple[int, ...]
    tiles: tuple[Tile, ...] = ()
    starts: tuple[tuple[int, int], ...] = ()
    """(ns after the phase began, ns of the HBM)"""


@dataclass(frozen=True)
class Period:
    """`lags`: (unit, later unit) → ns from the end of the one to the start of the other, for what it sends.

    `needs`: prefetch → (ns of the HBM of all its transfers, the first unit that waits for it).
    """

    segment: int
    works: tuple[Work, ...]
    lags: Mapping[tuple[int, int], int]
    needs: Mapping[int, tuple[int, int]]
    latency_ns: int


def main_segment(model: Model) -> int:
    """The loop with most trips."""
    return int(np.argmax(model.arrays.whole_trips))


def period_of(model: Model) -> Period:
    """Raises UserError for a loop with chosen members, whose transfers depend on what a router finds."""
    arrays, segment = model.arrays, main_segment(model)
    first, last = int(arrays.unit_first[segment]), int(arrays.unit_first[segment + 1])
    if (arrays.members[first:last, 0] >= 0).any():
        raise UserError("an exact schedule is found for periods without chosen experts; use the policy search")
    trip = min(TRIP, int(arrays.trips[segment]) - 1)
    sent: dict[int, tuple[int, float]] = {}
    waits: dict[int, int] = {}
    works, lags = [], dict[tuple[int, int], int]()
    for unit in range(first, last):
        part = int(arrays.part_first[unit])
        stream = int(max(arrays.stream[part], arrays.vectors[part]))
        count = int(arrays.tiles[stream]) if arrays.stream[part] >= 0 else 1
        pieces, starts, began = list[int](), list[tuple[int, int]](), 0.0
        arrivals: dict[int, float] = {}
        for at in range(int(arrays.slice_of[part, trip]), int(arrays.slice_of[part, trip]) + count):
            now = began
            for k in range(int(arrays.slice_first[at]), int(arrays.slice_first[at + 1])):
                kind, semaphore, _, _, route = (int(value) for value in model.notes.whole[k])
                after, need, latency = (float(value) for value in model.notes.real[k])
                now += after
                if kind in (BURST, SEND):
                    arrivals[semaphore] = now + _there(model, kind, route, need, latency)
                    now += need if kind == BURST else 0.0
                elif kind == START:
                    starts.append((round(now), round(need)))
                elif kind == WAIT and semaphore in arrivals:
                    now = max(now, arrivals[semaphore])
                elif kind == WAIT and semaphore in sent:
                    source, lag = sent[semaphore]
                    lags[source, unit] = max(lags.get((source, unit), 0), round(lag))
                elif kind == WAIT:
                    waits.setdefault(semaphore, unit)
            now += float(arrays.slice_rest[at])
            pieces.append(max(1, round(now - began)))
            began = now
        sent |= {semaphore: (unit, max(0.0, time - began)) for semaphore, time in arrivals.items()}
        used = stream >= 0 and not (arrays.vectors[part] >= 0 and _read_before(model, first, unit, stream))
        tile = Tile(stream, int(arrays.rows[stream]), round(float(arrays.need_ns[stream]))) if used else None
        works.append(Work(unit, tuple(pieces), (tile,) * count if tile else (), tuple(starts)))
    return Period(segment, tuple(works), lags, _needs(model, trip, waits, first, last), round(float(arrays.ticks[3])))


def _there(model: Model, kind: int, route: int, need: float, latency: float) -> float:
    """ns until messages have arrived, over routes that are free."""
    if kind == SEND:
        return need + latency
    bursts = model.bursts
    parts = range(int(bursts.first[route]), int(bursts.first[route + 1]))
    return max(float(bursts.until_ns[p] + bursts.latency_ns[p]) for p in parts)


def _read_before(model: Model, first: int, unit: int, stream: int) -> bool:
    parts = model.arrays.part_first
    return any(int(model.arrays.vectors[parts[other]]) == stream for other in range(first, unit))


def _needs(model: Model, trip: int, waits: Mapping[int, int], first: int, last: int) -> dict[int, tuple[int, int]]:
    arrays, found = model.arrays, dict[int, tuple[int, int]]()
    for number, at in enumerate(arrays.transfer_slice):
        notes = range(int(arrays.slice_first[at + trip]), int(arrays.slice_first[at + trip + 1])) if at >= 0 else ()
        starts = [k for k in notes if model.notes.whole[k, 0] == START]
        users = [waits[int(model.notes.whole[k, 1])] for k in starts if int(model.notes.whole[k, 1]) in waits]
        if users:
            found[number] = round(sum(float(model.notes.real[k, 1]) for k in starts)), min(users)
    return found
