"""The one-machine bound of a step: what depends on each other, and one core that computes it one after the other.

The longest chain (`dependence.py`) gives all independent work a core of its own; the sum of all computations gives it
no waits. Both are weak where the tiles of one product lie between two exchanges: none of them needs another, all need
what arrived, and the next message needs all of them. The one-machine bound has both (J. Carlier, "The one-machine
sequencing problem", European Journal of Operational Research 11, 1982): an operation has a head, before which it cannot
begin, and a tail, which must follow it, and the one machine does one at a time. Jackson's preemptive schedule of heads
and tails is exact for work that may be interrupted, and so a lower bound of every order of work that may not.

Here the machine is the core. A head is the longest chain to an operation, raised at the end of every group of messages
to what the bound of that message says; a tail is the longest chain from it to the message. Any part of the operations
that a message depends on gives a lower bound, so only those since the `REACH`-th group before are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby

from schedc.cost.dependence import Dependences
from schedc.cost.trace import Trace

REACH = 4
"""Groups of messages that a bound looks back over."""


@dataclass(frozen=True)
class Job:
    """Work of the core, in ns: it cannot begin before `head`, and `tail` follows it."""

    head: float
    work: float
    tail: float


def one_core_ns(known: Dependences) -> float:
    """No order of the step's operations ends before; ns."""
    heads: list[float] = []
    ends = _ends_of_messages(known.trace)
    groups = [0] * REACH
    for place, parents in enumerate(known.parents):
        head = max((heads[parent] + known.work[parent] + known.lag[parent] for parent in parents), default=0.0)
        if place in ends:
            head = max(head, jackson(_before(known, heads, parents, groups[-REACH])))
            groups.append(place)
        heads.append(head)
    chains = (head + work + lag for head, work, lag in zip(heads, known.work, known.lag, strict=True))
    rest = range(groups[-REACH], len(heads))
    return max(max(chains, default=0.0), jackson(_before(known, heads, rest, groups[-REACH])))


def jackson(jobs: Iterable[Job]) -> float:
    """When the last tail of Jackson's preemptive schedule ends: of what is there, the core does the longest tail."""
    coming = sorted(jobs, key=lambda job: job.head, reverse=True)
    ready: list[tuple[float, float]] = []
    now = latest = 0.0
    while coming or ready:
        if not ready:
            now = max(now, coming[-1].head)
        while coming and coming[-1].head <= now:
            job = coming.pop()
            heappush(ready, (-job.tail, job.work))
        negative_tail, work = heappop(ready)
        free = coming[-1].head - now if coming else work
        if work > free:
            heappush(ready, (negative_tail, work - free))
        now += min(work, free)
        if work <= free:
            latest = max(latest, now - negative_tail)
    return latest


def _before(known: Dependences, heads: Sequence[float], parents: Iterable[int], since: int) -> list[Job]:
    """The operations from `since` on that `parents` depend on, and they themselves, as jobs of what follows them."""
    after = {parent: 0.0 for parent in parents if parent >= since}
    waiting = [-parent for parent in sorted(after, reverse=True)]
    jobs = []
    while waiting:
        place = -heappop(waiting)
        work, tail = known.work[place], known.lag[place] + after[place]
        if work > 0:
            jobs.append(Job(heads[place], work, tail))
        for parent in known.parents[place]:
            if parent >= since:
                if parent not in after:
                    heappush(waiting, -parent)
                after[parent] = max(after.get(parent, 0.0), work + tail)
    return jobs


def _ends_of_messages(trace: Trace) -> frozenset[int]:
    """The last message of every group that one phase sends."""
    found = set()
    for _, run in groupby(enumerate(trace.executed), key=lambda entry: entry[1].phase):
        sent = [place for place, done in run if done.flight is not None and done.flight.lane == "link"]
        found.update(sent[-1:])
    return frozenset(found)
