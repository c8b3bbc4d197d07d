"""Messages that a device sends one after the other to its peers, as one entry.

The k-th message over a route leaves at `left_k = max(t0 + o_k, left_{k-1}) + d_k`, with `o_k` the core time since the
first. Over all of them that is `max(t0 + until, free + total)`, with `free` the time at which the route was free, and
`until` and `total` known beforehand: exact, in one step a route instead of one a message. What is on the way arrives as
a whole, which nobody notices if every wait takes whole bursts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schedc.explore.fast.trace import BURST, SEND, WAIT, Note


@dataclass(frozen=True)
class OneRoute:
    """The part of a burst that goes over one route, in ns."""

    route: int
    until_ns: float
    total_ns: float
    latency_ns: float


@dataclass(frozen=True)
class Bursts:
    """By number, the routes of a burst; equal ones have the same number."""

    routes: tuple[tuple[OneRoute, ...], ...]


class Gathering:
    """Makes bursts of the messages of several lists of notes, for whose semaphores `waits` are all the waits."""

    def __init__(self, notes: Iterable[Note]) -> None:
        self.number: dict[tuple[OneRoute, ...], int] = {}
        self.partly: set[int] = set()
        """Semaphores of which a wait takes a part of a burst."""
        taken: dict[int, Counter[int]] = defaultdict(Counter)
        given: dict[int, Counter[int]] = defaultdict(Counter)
        for run in _runs(notes):
            if run[0].kind == WAIT:
                taken[run[0].semaphore][run[0].amount] += 1
            elif run[0].kind == SEND:
                total = sum(note.amount for note in run)
                given[run[0].semaphore][total] += 1
                given[run[0].other][total] += 1
        for semaphore, totals in given.items():
            if any(amount % total for amount in taken[semaphore] for total in totals):
                self.partly.add(semaphore)

    def gathered(self, notes: Iterable[Note]) -> list[Note]:
        found: list[Note] = []
        for run in _runs(notes):
            whole = len(run) > 1 and not self.partly & {run[0].semaphore, run[0].other}
            found += [self._burst(run)] if whole else [self._burst([note]) if note.parts else note for note in run]
        return found

    def bursts(self) -> Bursts:
        return Bursts(tuple(self.number))

    def _burst(self, run: Sequence[Note]) -> Note:
        parts: dict[int, tuple[float, float, float]] = {}
        since = 0.0
        for at, note in enumerate(run):
            since += note.after_ns if at else 0.0
            for lane, need in note.parts or ((note.route, note.need_ns),):
                until, total, latency = parts.get(lane, (0.0, 0.0, 0.0))
                parts[lane] = (max(until, since) + need, total + need, max(latency, note.latency_ns))
        routes = tuple(OneRoute(route, *part) for route, part in sorted(parts.items()))
        number = self.number.setdefault(routes, len(self.number))
        amount = sum(note.amount for note in run)
        return replace(run[0], kind=BURST, amount=amount, need_ns=since, latency_ns=0.0, route=number)


def _runs(notes: Iterable[Note]) -> Iterable[list[Note]]:
    """Neighbouring messages of the same semaphores together, every other note alone."""
    run: list[Note] = []
    for note in notes:
        same = run and note.kind == SEND == run[0].kind
        if same and (note.semaphore, note.other) == (run[0].semaphore, run[0].other):
            run.append(note)
            continue
        if run:
            yield run
        run = [note]
    if run:
        yield run
