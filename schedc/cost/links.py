"""Links between devices: a first linear cost, latency + bytes / rate, of the chip's figures.

Devices of one chip talk over a link of their own. Between chips every device has its share of the chip's links; peers
on other chips are dealt over these by distance, and what goes over one link goes one after the other. How many hops a
chip is away, and what other chips send through, is left out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

from schedc.target.chip import Chip


@dataclass(frozen=True)
class Network:
    """Consecutive devices share a chip; `links` of it are a device's."""

    devices_per_chip: int = 1
    links: int = 1
    sibling_latency_ns: float = 0.0
    sibling_bytes_per_ns: float = inf
    link_latency_ns: float = 0.0
    link_bytes_per_ns: float = inf

    @classmethod
    def of(cls, chip: Chip) -> Network:
        """A chip whose devices have no known link of their own talks to them as to another chip's."""
        cost = chip.cost
        sibling_us = cost.link_latency_us if cost.sibling_latency_us is None else cost.sibling_latency_us
        return cls(
            devices_per_chip=chip.devices_per_chip,
            links=max(1, cost.links // chip.devices_per_chip),
            sibling_latency_ns=sibling_us * 1000.0,
            sibling_bytes_per_ns=cost.link_gb_s if cost.sibling_gb_s is None else cost.sibling_gb_s,
            link_latency_ns=cost.link_latency_us * 1000.0,
            link_bytes_per_ns=cost.link_gb_s,
        )

    def without_limits(self) -> Network:
        """Rates for nothing: what is left is latency."""
        return replace(self, sibling_bytes_per_ns=inf, link_bytes_per_ns=inf)


@dataclass
class Links:
    """The links out of one device, and what is on its way to it."""

    network: Network
    _free: dict[Hashable, float] = field(default_factory=dict)
    """By route, when it has sent all that was given to it."""
    _coming: list[tuple[float, int, list[int], int, int]] = field(default_factory=list)
    """(time, order, semaphore counts, index, amount)"""
    _order: int = 0

    def route(self, device: int, peer: int) -> int:
        """0 for a device of the same chip, else the number of the link from 1."""
        chips = peer // self.network.devices_per_chip - device // self.network.devices_per_chip
        return 0 if chips == 0 else 1 + (abs(chips) - 1) % self.network.links

    def latency(self, route: int) -> float:
        return self.network.link_latency_ns if route else self.network.sibling_latency_ns

    def duration(self, route: int, size: int) -> float:
        """What `size` bytes take of the link, in ns."""
        return size / (self.network.link_bytes_per_ns if route else self.network.sibling_bytes_per_ns)

    def send(self, route: int, size: int, now: float) -> tuple[float, float]:
        """When the last of `size` bytes has left, and when it is there."""
        left = max(now, self._free.get(route, 0.0)) + self.duration(route, size)
        self._free[route] = left
        return left, left + self.latency(route)

    def deliver(self, time: float, counts: list[int], index: int, amount: int) -> None:
        """At `time` the semaphore `counts[index]` gets `amount`."""
        self._order += 1
        heappush(self._coming, (time, self._order, counts, index, amount))

    def next_time(self) -> float:
        """When something arrives next, infinite if nothing is on its way."""
        return self._coming[0][0] if self._coming else inf

    def advance(self, until: float) -> None:
        """Let everything arrive up to and including `until`."""
        while self.next_time() <= until:
            _, _, counts, index, amount = heappop(self._coming)
            counts[index] += amount
