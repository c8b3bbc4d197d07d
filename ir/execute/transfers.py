"""Transfers and signals on their way in a timed run: they move in pieces, at times that the timing draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from schedc.ir.execute.timing import Timing
from schedc.ir.execute.trace import Read


class Flight:
    """A transfer to `peer` that `step` of `device` started; a signal is one without rows."""

    __slots__ = ("added", "amount", "arrived", "device", "is_done", "is_read", "peer", "sent", "source", "step", "tags",
                 "target", "wrote")  # fmt: skip

    def __init__(
        self, device: int, step: int, peer: int, amount: int, arrived: int,
        source: Read | None = None, target: int = 0, sent: int | None = None,
    ) -> None:  # fmt: skip
        self.device, self.step, self.peer = device, step, peer
        self.amount, self.arrived, self.sent = amount, arrived, sent
        self.source, self.target = source, target
        self.tags: list[int] = []
        """What was read so far."""
        self.wrote = self.added = 0
        """Cells that were written, and rows that the semaphore at the end where it is now has got already."""
        self.is_read, self.is_done = source is None, False


class Transfers:
    def __init__(
        self, memory: list[list[int]], timing: Timing, compare: Callable[[int, int, Read, list[int], int], None]
    ) -> None:
        self.memory = memory
        self.counts: list[dict[int, int]] = [defaultdict(int) for _ in memory]
        """What each semaphore of each device holds."""
        self.agenda: list[tuple[int, int, Flight]] = []
        """When something moves by itself: a heap of clock, tie-break and what."""
        self.clock = 0
        self.woken: set[int] = set()
        """Devices whose semaphores got something."""
        self._expected: list[dict[int, list[Flight]]] = [defaultdict(list) for _ in memory]
        """What will add to each semaphore of each device, the oldest first."""
        self._timing, self._compare = timing, compare
        self._launched = 0

    def launch(self, flight: Flight) -> None:
        if flight.sent is not None:
            self._expected[flight.device][flight.sent].append(flight)
        self._expected[flight.peer][flight.arrived].append(flight)
        self._plan(flight)

    def tick(self) -> None:
        """Move what is due by now."""
        while self.agenda and self.agenda[0][0] <= self.clock:
            flight = heappop(self.agenda)[2]
            if not flight.is_done:
                self._move(flight)
                self._plan(flight)

    def push(self, device: int, semaphore: int) -> bool:
        """Move something that will add to this semaphore, if there is anything."""
        flights = self._expected[device][semaphore]
        if not flights:
            return False
        self._move(flights[-1] if self._timing.newest_first else self._timing.chance.choice(flights))
        return True

    def expected(self, device: int) -> Iterator[Flight]:
        """What will still add to semaphores of this device."""
        for flights in self._expected[device].values():
            yield from flights

    def _plan(self, flight: Flight) -> None:
        timing = self._timing
        while not flight.is_done:
            delay = (timing.writing if flight.is_read else timing.reading).delay(timing.chance)
            if delay is None:
                return
            if delay:
                self._launched += 1
                heappush(self.agenda, (self.clock + delay, self._launched, flight))
                return
            self._move(flight)

    def _move(self, flight: Flight) -> None:
        """Read or write a piece. A semaphore may get rows before, as they come, the last with the last piece."""
        if flight.is_read:
            if flight.tags:
                if self._adds_some(flight, flight.peer, flight.arrived):
                    return
                end = self._piece(flight.wrote, len(flight.tags))
                at = flight.target
                self.memory[flight.peer][at + flight.wrote : at + end] = flight.tags[flight.wrote : end]
                flight.wrote = end
            if flight.wrote == len(flight.tags):
                flight.is_done = True
                self._add(flight, flight.peer, flight.arrived)
            return
        source = flight.source
        assert source is not None
        if flight.sent is not None and self._adds_some(flight, flight.device, flight.sent):
            return
        done, cells = len(flight.tags), source.end - source.first
        end = self._piece(done, cells)
        tags = self.memory[flight.device][source.first + done : source.first + end]
        if tags != source.expected[done:end]:
            self._compare(flight.device, flight.step, source, tags, done)
        flight.tags += tags
        if end == cells:
            flight.is_read = True
            if flight.sent is not None:
                self._add(flight, flight.device, flight.sent)

    def _piece(self, done: int, cells: int) -> int:
        chance = self._timing.chance
        return cells if cells - done < 2 or chance.random() < 0.7 else chance.randint(done + 1, cells)

    def _adds_some(self, flight: Flight, device: int, semaphore: int) -> bool:
        """Maybe any number of rows but the last: it is not said which rows come first."""
        left = flight.amount - flight.added - 1
        if left < 1 or self._timing.chance.random() < 0.7:
            return False
        rows = self._timing.chance.randint(1, left)
        flight.added += rows
        self.counts[device][semaphore] += rows
        self.woken.add(device)
        return True

    def _add(self, flight: Flight, device: int, semaphore: int) -> None:
        self.counts[device][semaphore] += flight.amount - flight.added
        flight.added = 0
        self._expected[device][semaphore].remove(flight)
        self.woken.add(device)
