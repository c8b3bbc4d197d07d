"""Which wait took which transfer: rows that come to a semaphore are taken in the order in which they came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """At `time` (ns) a transfer has given all of its `rows` to `semaphore`."""

    semaphore: str
    time: float
    rows: int
    transfer: int


@dataclass(frozen=True, slots=True)
class Taking:
    """Wait number `wait` takes `rows` from `semaphore`."""

    semaphore: str
    rows: int
    wait: int


def taken(arrivals: Sequence[Arrival], takings: Sequence[Taking]) -> Iterator[tuple[Arrival, int]]:
    """Every arrival with the wait that takes its last row; `takings` are in the order of execution.

    What no wait takes is left out:

        arrives   3 rows   5 rows   2 rows
        taken     |--- 4 ---|---- 6 -----|
                  first     second wait: takes the last rows of two
    """
    coming: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in sorted(arrivals, key=lambda arrival: (arrival.time, arrival.transfer)):
        coming[arrival.semaphore].append(arrival)
    waiting: dict[str, list[Taking]] = defaultdict(list)
    for taking in takings:
        waiting[taking.semaphore].append(taking)
    for semaphore, several in coming.items():
        waits = iter(waiting[semaphore])
        came = took = 0
        wait: Taking | None = None
        for arrival in several:
            came += arrival.rows
            while took < came:
                wait = next(waits, None)
                if wait is None:
                    break
                took += wait.rows
            if wait is None:
                break
            yield arrival, wait.wait
