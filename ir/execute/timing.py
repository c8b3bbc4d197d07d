"""How fast devices and transfers are in a run. Every timing is legal; the first seeds are the extreme ones."""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass
from itertools import accumulate, product

MORE_THAN_ANY_PROGRAM = 1 << 62


@dataclass(frozen=True)
class Haste:
    """How soon the next piece of a transfer moves: at once, never before a wait needs it, else after a while."""

    at_once: float
    at_last: float
    mean_delay: float = 1.0
    """In steps of all devices."""

    def delay(self, chance: random.Random) -> int | None:
        """Steps until then; None: not before a wait needs it."""
        drawn = chance.random()
        if drawn < self.at_once:
            return 0
        if drawn < self.at_once + self.at_last:
            return None
        return 1 + int(chance.expovariate(1.0) * self.mean_delay)


_SOON, _LATE = Haste(1.0, 0.0), Haste(0.0, 1.0)
_EXTREMES = ((_LATE, _LATE, True, 1), (_SOON, _SOON, True, -1), (_SOON, _LATE, True, -1), (_LATE, _LATE, False, 1))
"""Haste of reading and of writing, whether transfers go first, and by which steps the devices follow each other."""


@dataclass(frozen=True)
class Timing:
    chance: random.Random
    reading: Haste
    writing: Haste
    """Also of signals to peers."""
    newest_first: bool
    """Whether the newest of several transfers completes when a wait needs any."""
    transfers_first: bool
    """Whether transfers that a waiting device needs move before the devices after it run."""
    orders: tuple[tuple[int, ...], ...]
    """The first device of an order that can run does. One order is a strict priority; of several, one is drawn."""
    weights: tuple[float, ...]
    """How often each order is drawn, added up."""
    mean_turn: float = 0.0
    """Steps that a device runs before the next order is drawn."""

    @property
    def is_strict(self) -> bool:
        return len(self.orders) == 1

    def order(self) -> tuple[int, ...]:
        return self.orders[0 if self.is_strict else bisect(self.weights, self.chance.random() * self.weights[-1])]

    def turn(self) -> int:
        """Steps until the next order is drawn."""
        if self.is_strict:
            return MORE_THAN_ANY_PROGRAM
        return 1 + int(self.chance.expovariate(1.0) * self.mean_turn)


def timing(seed: int, devices: int) -> Timing:
    """The timing of a seed.

    First come, for each device in turn, the runs in which the others are as far ahead of it as they can get:
    with transfers at their latest (before other devices run, or after), at their soonest, and read at their
    soonest but written at their latest.
    """
    chance = random.Random(seed)
    extremes = list(product(_EXTREMES, reversed(range(devices))))
    if seed < len(extremes):
        (reading, writing, transfers_first, direction), last = extremes[seed]
        order = tuple((last + direction * distance) % devices for distance in (*range(1, devices), 0))
        return Timing(chance, reading, writing, True, transfers_first, (order,), (1.0,))
    ranks = list(range(devices))
    chance.shuffle(ranks)
    orders = tuple((*ranks[first:], *ranks[:first]) for first in range(devices))
    return Timing(
        chance,
        _haste(chance),
        _haste(chance),
        newest_first=chance.random() < 0.3,
        transfers_first=chance.random() < 0.5,
        orders=orders[:1] if chance.random() < 0.4 else orders,
        weights=tuple(accumulate(chance.choice((1.0, 1.0, 10.0, 1000.0)) for _ in ranks)),
        mean_turn=chance.choice((0.0, 3.0, 30.0, 1000.0)),
    )


def _haste(chance: random.Random) -> Haste:
    at_once, at_last = chance.choice(((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.3, 0.3), (0.1, 0.6), (0.6, 0.1)))
    return Haste(at_once, at_last, chance.choice((2.0, 10.0, 50.0, 300.0)))
