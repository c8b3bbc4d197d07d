"""A trace as columns of numbers, which `execute` runs over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from schedc.cost.machine import Machine
from schedc.cost.simulate import Stuck
from schedc.errors import CheckFailed
from schedc.explore.fast.bursts import Bursts, Gathering
from schedc.explore.fast.trace import START, Note, Recorded

DEPTH = 64
"""Messages that may be under way to one semaphore."""


WHOLE = ("kind", "semaphore", "amount", "other", "route")
REAL = ("after_ns", "need_ns", "latency_ns")


@dataclass(frozen=True)
class Columns:
    """The fields of notes, a row each: `whole` int64[notes, 5] in the order of WHOLE, `real` float64[notes, 3]."""

    whole: np.ndarray
    real: np.ndarray

    @classmethod
    def of(cls, notes: Sequence[Note]) -> Columns:
        whole = np.array([[getattr(note, name) for name in WHOLE] for note in notes], np.int64)
        real = np.array([[getattr(note, name) for name in REAL] for note in notes], np.float64)
        return cls(whole.reshape(-1, len(WHOLE)), real.reshape(-1, len(REAL)))

    @classmethod
    def empty(cls, length: int) -> Columns:
        return cls(np.full((length, len(WHOLE)), -1, np.int64), np.zeros((length, len(REAL))))

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        return self.whole, self.real


@dataclass(frozen=True)
class BurstColumns:
    """The routes of burst b are `first[b]` to `first[b + 1]` of the others."""

    first: np.ndarray
    route: np.ndarray
    until_ns: np.ndarray
    total_ns: np.ndarray
    latency_ns: np.ndarray

    @classmethod
    def of(cls, bursts: Bursts) -> BurstColumns:
        parts = [part for routes in bursts.routes for part in routes]
        return cls(
            np.cumsum([0, *(len(routes) for routes in bursts.routes)]).astype(np.int64),
            np.array([part.route for part in parts], np.int64),
            *(np.array([getattr(part, name) for part in parts], np.float64) for name in
              ("until_ns", "total_ns", "latency_ns")),
        )  # fmt: skip

    def all(self) -> tuple[np.ndarray, ...]:
        return self.first, self.route, self.until_ns, self.total_ns, self.latency_ns


def fed_by_hbm(notes: Sequence[Note], semaphores: int) -> np.ndarray:
    """By semaphore, whether transfers of the HBM give to it."""
    fed = np.zeros(semaphores, np.bool_)
    fed[[note.semaphore for note in notes if note.kind == START]] = True
    return fed


def step_ns(recorded: Recorded, machine: Machine) -> float:
    """The time of a recorded step. Raises Stuck if a wait never ends."""
    from schedc.explore.fast.execute import execute

    gathering = Gathering(recorded.notes)
    notes = gathering.gathered(recorded.notes)
    given: list[Any] = [*Columns.of(notes).all(), len(notes), recorded.rest_ns]
    given += BurstColumns.of(gathering.bursts()).all()
    given += [
        recorded.semaphores,
        fed_by_hbm(notes, recorded.semaphores),
        machine.network.lanes,
        DEPTH,
        machine.in_flight,
        np.zeros(1),
    ]
    time = execute(*given)
    return checked(time)


def checked(time: float) -> float:
    """Raises Stuck or CheckFailed for what is no time."""
    if isnan(time):
        raise Stuck("a wait of the trace never ends")
    if time < 0:
        raise CheckFailed(f"more than {DEPTH} messages are under way to one semaphore: the fast simulation has no room")
    return time
