"""How far the devices can get without each other: which arrivals a device may see after each of its events.

A device waits, it never asks whether it would have to: so the order in which devices run changes
nothing but time, and what can happen while one of them stands still is found by letting all others run
as far as they get. A transfer of a peer that starts before device d executes its event number n, and not
before its event n-1, may arrive any time after event n-1 of d; until d has waited for it, it may still
be under way. That is exact: a timing that does it exists, since the others can be that fast.

What has arrived has been read. So where the sender gets no further before d has waited for its transfer,
it may write over the source, whether or not it has waited for its own semaphore.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from schedc.ir.verify.devices.events import Event, Post
from schedc.ir.verify.devices.symmetry import Permutation, symmetries
from schedc.ir.verify.state import Element

Traces = Sequence[Sequence[Event]]
"""The events of every device."""


@dataclass(frozen=True, slots=True)
class Sent:
    sender: int
    number: int
    """Of the event among those of the sender, from 0."""
    event: Event
    post: Post


class _Run:
    """The devices of `free` run as far as they get, each time that `advance` is called."""

    def __init__(self, traces: Traces, free: Iterable[int]) -> None:
        self._traces = traces
        self._free = frozenset(free)
        self._ready = list(self._free)
        self._waits_for: list[Element | None] = [None] * len(traces)
        self._passed = [list(accumulate((e.kind == "barrier" for e in trace), initial=0)) for trace in traces]
        """Per device and event, the barriers before it."""
        self.position = [0] * len(traces)
        """Per device, the events that it has executed."""
        self.counts: dict[tuple[int, Element], int] = defaultdict(int)
        self.arrived = [0] * len(traces)
        """Per device, the barriers that it has come to."""
        self.posted: list[Sent] = []
        """Since it was last emptied, to devices that are not free."""

    def advance(self) -> None:
        ready, position, traces = self._ready, self.position, self._traces
        while ready:
            device = ready.pop()
            trace = traces[device]
            while position[device] < len(trace) and self.execute(device, trace[position[device]]):
                pass

    def execute(self, device: int, event: Event) -> bool:
        """Execute the device's next event, or as much of it as it can; whether it is done."""
        if event.kind == "post":
            for post in event.posts:
                self.counts[post.device, post.element] += post.amount
                if post.device not in self._free:
                    self.posted.append(Sent(device, self.position[device], event, post))
                elif self._waits_for[post.device] == post.element:
                    self._waits_for[post.device] = None
                    self._ready.append(post.device)
        elif event.kind == "take":
            if self.counts[device, event.element] < event.amount:
                self._waits_for[device] = event.element
                return False
            self.counts[device, event.element] -= event.amount
        elif not self._passes(device):
            return False
        self.position[device] += 1
        return True

    def _passes(self, device: int) -> bool:
        passed = self._passed[device][self.position[device]]
        self.arrived[device] = passed + 1
        if min(self.arrived) <= passed:
            return False
        self._ready += [d for d in self._free if d != device and self._is_at_barrier(d, passed)]
        return True

    def _is_at_barrier(self, device: int, passed: int) -> bool:
        at, trace = self.position[device], self._traces[device]
        return at < len(trace) and trace[at].kind == "barrier" and self._passed[device][at] == passed


@dataclass(frozen=True)
class Stuck:
    """A device that never gets past an event."""

    device: int
    event: Event
    held: int
    """What the semaphore holds."""


@dataclass(frozen=True)
class Outcome:
    stuck: tuple[Stuck, ...]
    left: Mapping[tuple[int, Element], int]
    """What is left on semaphores when all are done."""


def run_all(traces: Traces) -> Outcome:
    """All devices run to their ends, or as far as they get."""
    run = _Run(traces, range(len(traces)))
    run.advance()
    stuck = tuple(
        Stuck(device, trace[at], run.counts[device, trace[at].element])
        for device, (trace, at) in enumerate(zip(traces, run.position, strict=True))
        if at < len(trace)
    )
    return Outcome(stuck, {key: count for key, count in run.counts.items() if count})


@dataclass(frozen=True)
class View:
    """What a device sees of the others."""

    arrivals: Mapping[int, Sequence[Sent]]
    """By number of events that the device has executed: what peers may then send to it, and not earlier."""
    received: Mapping[tuple[int, int], int]
    """By sender and number of its event: that many events it can execute before the device has waited for it."""


def views_of(traces: Traces) -> list[View]:
    """What each device sees. Of devices that are in the same place among all others, one is looked at."""
    first = view_of(traces, 0)
    return [
        view_of(traces, device) if permutation is None else _mapped(first, traces, permutation)
        for device, permutation in enumerate(symmetries(traces))
    ]


def _mapped(view: View, traces: Traces, permutation: Permutation) -> View:
    def image(sent: Sent) -> Sent:
        event = traces[permutation[sent.sender]][sent.number]
        which = 0 if len(event.posts) == 1 else sent.event.posts.index(sent.post)
        return Sent(permutation[sent.sender], sent.number, event, event.posts[which])

    return View(
        {events: [image(sent) for sent in entries] for events, entries in view.arrivals.items()},
        {(permutation[sender], number): events for (sender, number), events in view.received.items()},
    )


def view_of(traces: Traces, device: int) -> View:
    run = _Run(traces, [other for other in range(len(traces)) if other != device])
    arrivals: dict[int, list[Sent]] = {}
    received: dict[tuple[int, int], int] = {}
    outstanding: dict[Element, list[Sent]] = defaultdict(list)
    taken: dict[Element, int] = defaultdict(int)

    def collect(events: int) -> None:
        run.advance()
        for sent in run.posted:
            if sent.post.device == device:
                outstanding[sent.post.element].append(sent)
                if sent.sender != device:
                    arrivals.setdefault(events, []).append(sent)
        run.posted.clear()

    collect(0)
    for number, event in enumerate(traces[device], 1):
        if event.kind == "take":
            element = event.element
            taken[element] += event.amount
            if taken[element] == sum(sent.post.amount for sent in outstanding[element]):
                for sent in outstanding.pop(element):
                    received[sent.sender, sent.number] = run.position[sent.sender]
                del taken[element]
        done = run.execute(device, event)
        collect(number)
        if not done and not run.execute(device, event):
            break
    return View(arrivals, received)
