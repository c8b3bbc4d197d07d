"""Links between devices: what a message to a peer occupies, and when it is there.

Three classes of pairs: two devices of one chip, over a wire of their own; devices of neighbouring chips; devices of
chips that are more hops away on the torus. What a device sends to other chips occupies lanes, each of them one message
after the other:

- that of the other chip, `route_bytes_per_ns`: what one device gets to one other chip, however many links that uses;
- those of the links it goes over, `link_bytes_per_ns` each way, which all devices of a chip share and which also carry
  what other chips send through. All devices do the same at the same time, so that a message of this device adds to them
  its bytes times its hops in that dimension times the devices of a chip.

Then it takes its latency: of its class, and `hop_ns` for each hop beyond the first. A message whose hops are halfway
around a ring of chips uses both directions. In a line of chips (a dimension without a way around) the middle links
carry the most: the hops of an exchange of all with all are scaled to what these carry.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from math import inf, prod

from schedc.target.target import Target

WHOLE_RING = 4
"""Chips of a dimension from which on it is a ring, if all dimensions have as many or more: a slice of whole cubes."""

Parts = tuple[tuple[int, float], ...]
"""(lane, ns)"""


@dataclass(frozen=True)
class Route:
    """To a device of the chip that is number `chip`, counted from that of the sender; `hops` between chips.

    `loads`: (dimension and direction, share of the link's load).
    """

    chip: int
    hops: int
    loads: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Network:
    """Consecutive devices share a chip, consecutive chips a host; `topology` and `host` are chips by dimension."""

    devices_per_chip: int = 1
    sibling_latency_ns: float = 0.0
    sibling_bytes_per_ns: float = inf
    link_latency_ns: float = 0.0
    hop_ns: float = 0.0
    route_bytes_per_ns: float = inf
    link_bytes_per_ns: float = inf
    topology: tuple[int, ...] = (1,)
    host: tuple[int, ...] = (1,)

    @classmethod
    def of(cls, target: Target) -> Network:
        """A chip whose devices have no known wire of their own talks to them as to another chip's; of what is not known
        of a chip's links, nothing is shared and a hop is as far as the next."""
        cost, chip = target.cost, target.chip
        sibling_us = cost.link_latency_us if cost.sibling_latency_us is None else cost.sibling_latency_us
        return cls(
            devices_per_chip=chip.devices_per_chip,
            sibling_latency_ns=sibling_us * 1000.0,
            sibling_bytes_per_ns=cost.link_gb_s if cost.sibling_gb_s is None else cost.sibling_gb_s,
            link_latency_ns=cost.link_latency_us * 1000.0,
            hop_ns=(cost.link_hop_us or 0.0) * 1000.0,
            route_bytes_per_ns=cost.link_gb_s,
            link_bytes_per_ns=cost.link_shared_gb_s or cost.link_gb_s * chip.devices_per_chip,
            topology=target.topology,
            host=chip.host_shape,
        )

    @property
    def lanes(self) -> int:
        """To the sibling, to every other chip, and every dimension's link of both directions."""
        return prod(self.topology) + 2 * len(self.topology)

    def without_limits(self) -> Network:
        """Rates for nothing: what is left is latency."""
        return replace(self, sibling_bytes_per_ns=inf, route_bytes_per_ns=inf, link_bytes_per_ns=inf)

    def route(self, device: int, peer: int) -> Route:
        here, there = device // self.devices_per_chip, peer // self.devices_per_chip
        return _route(self.topology, self.host, here, there)


@lru_cache(maxsize=65536)
def _route(topology: tuple[int, ...], host: tuple[int, ...], here: int, there: int) -> Route:
    chips = prod(topology)
    number = (there - here) % chips
    if not number:
        return Route(0, 0)
    whole = all(size >= WHOLE_RING for size in topology if size > 1) and chips >= WHOLE_RING ** len(topology)
    hops, loads = 0, []
    pairs = zip(_coordinates(topology, host, here), _coordinates(topology, host, there), strict=True)
    for dimension, ((a, b), size) in enumerate(zip(pairs, topology, strict=True)):
        if a == b:
            continue
        ahead = (b - a) % size
        distance = min(ahead, size - ahead) if whole else abs(b - a)
        if whole:
            ways = [side for side, way in enumerate((ahead, size - ahead)) if way == distance]
            loads += [(2 * dimension + side, distance / len(ways)) for side in ways]
        else:
            loads.append((2 * dimension + (b < a), distance * _busiest(size)))
        hops += distance
    return Route(number, hops, tuple(loads))


def _busiest(size: int) -> float:
    """Of a line of chips: what its middle link carries in an exchange of all with all, a hop of one chip's messages."""
    return (size // 2) * (size - size // 2) / sum(range(size))


def _coordinates(topology: tuple[int, ...], host: tuple[int, ...], chip: int) -> tuple[int, ...]:
    """Chips are numbered host by host, the first dimension fastest, in a host and of the hosts."""
    inside, number = chip % prod(host), chip // prod(host)
    found = []
    for size, chips in zip(topology, host, strict=True):
        hosts = max(1, size // chips)
        found.append(number % hosts * chips + inside % chips)
        inside, number = inside // chips, number // hosts
    return tuple(found)


@dataclass
class Links:
    """The links out of one device, and what is on its way to it."""

    network: Network
    _free: dict[int, float] = field(default_factory=dict)
    """By lane, when it has sent all that was given to it."""
    _coming: list[tuple[float, int, list[int], int, int]] = field(default_factory=list)
    """(time, order, semaphore counts, index, amount)"""
    _order: int = 0

    def route(self, device: int, peer: int) -> Route:
        return self.network.route(device, peer)

    def latency(self, route: Route) -> float:
        """From the last byte's departure to its arrival."""
        network = self.network
        return network.link_latency_ns + network.hop_ns * (route.hops - 1) if route.hops else network.sibling_latency_ns

    def parts(self, route: Route, size: int) -> Parts:
        """The lanes that `size` bytes occupy, and for how many ns each."""
        return tuple((lane, size * ns) for lane, ns in _lanes(self.network, route))

    def duration(self, route: Route, size: int) -> float:
        """What `size` bytes take if nothing else is sent, in ns."""
        return max(ns for _, ns in self.parts(route, size))

    def send(self, route: Route, size: int, now: float) -> tuple[float, float]:
        """When the last of `size` bytes has left, and when it is there."""
        left, free = now, self._free
        for lane, ns in self.parts(route, size):
            free[lane] = max(now, free.get(lane, 0.0)) + ns
            left = max(left, free[lane])
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


@lru_cache(maxsize=65536)
def _lanes(network: Network, route: Route) -> Parts:
    """Of one byte."""
    if not route.hops:
        return ((0, 1.0 / network.sibling_bytes_per_ns),)
    first, shared = prod(network.topology), network.devices_per_chip / network.link_bytes_per_ns
    links = tuple((first + key, shared * load) for key, load in route.loads)
    return ((route.chip, 1.0 / network.route_bytes_per_ns), *links)
