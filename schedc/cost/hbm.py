"""The HBM of one device, shared by its transfers.

A transfer is on its way for its latency, and then needs the HBM for `descriptor_ns + bytes / bytes_per_ns`. Transfers
that need it at the same time share it equally, up to `in_flight` of them; the others wait in the order of arrival
(1: strictly one after the other). Shares, not turns, because a published kernel was slower with more expert transfers
in flight: the one that was needed first then arrives later. A stream of transfers takes the sum of their needs either
way, which is the fit T = bytes/B + d · descriptors. Latency takes no bandwidth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf


@dataclass(slots=True)
class Transfer:
    """Of `rows` rows, which it adds to `counts[semaphore]` when it ends. Times in ns."""

    counts: list[int]
    semaphore: int
    rows: int
    need_ns: float
    """The time of HBM that it takes if it has all of it."""
    issued: float
    began: float = 0.0
    """When it got its share of the HBM: its latency was over, and a place free."""
    names: tuple[str, str] = ("", "")
    """What it is called, and its phase."""
    op: int = -1
    """The number of its start in the order of `program.walk`."""


class Hbm:
    """Equal shares of the HBM for up to `in_flight` transfers. Its clock only moves when it is asked."""

    def __init__(self, in_flight: int, log: Callable[[Transfer, float], None] | None = None) -> None:
        self.in_flight, self.log = in_flight, log
        self.now = 0.0
        self.busy_ns = self.latency_ns = 0.0
        self.served = 0.0
        """Service in ns that a transfer has had which was there from the beginning: grows at 1/n with n sharing."""
        self._coming: list[tuple[float, int, Transfer]] = []
        self._queue: deque[Transfer] = deque()
        self._sharing: list[tuple[float, int, Transfer]] = []
        """(value of `served` at which it ends, order, transfer)"""
        self._order = 0

    def submit(self, transfer: Transfer, latency: float) -> None:
        """`transfer` needs the HBM `latency` after it was issued; it was not issued in this clock's past."""
        self.advance(transfer.issued)
        self._order += 1
        heappush(self._coming, (transfer.issued + latency, self._order, transfer))

    def advance(self, until: float) -> None:
        """Let everything happen up to and including `until`."""
        while self.next_time() <= until:
            self.step()
        if until > self.now:
            self._pass(until)

    def step(self) -> bool:
        """Let the next thing happen: a transfer ends or begins. False if there is none."""
        time = self.next_time()
        if time == inf:
            return False
        ends = self._end_time() == time
        self._pass(time)
        if ends:
            self.served, _, transfer = heappop(self._sharing)
            transfer.counts[transfer.semaphore] += transfer.rows
            if self.log:
                self.log(transfer, time)
            if self._queue:
                self._begin(self._queue.popleft())
        else:
            transfer = heappop(self._coming)[2]
            if len(self._sharing) < self.in_flight:
                self._begin(transfer)
            else:
                self._queue.append(transfer)
        return True

    def _begin(self, transfer: Transfer) -> None:
        self._order += 1
        transfer.began = self.now
        heappush(self._sharing, (self.served + transfer.need_ns, self._order, transfer))

    def _end_time(self) -> float:
        if not self._sharing:
            return inf
        return self.now + max(0.0, self._sharing[0][0] - self.served) * len(self._sharing)

    def next_time(self) -> float:
        """When something happens by itself, infinite if nothing does."""
        return min(self._end_time(), self._coming[0][0] if self._coming else inf)

    def _pass(self, time: float) -> None:
        passed = time - self.now
        if self._sharing:
            self.busy_ns += passed
            self.served += passed / len(self._sharing)
        elif self._coming:
            self.latency_ns += passed
        self.now = time
