"""How fast devices and transfers are in a run. Every timing is legal; the first seeds are the extreme ones."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

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


SOON, LATE = Haste(1.0, 0.0), Haste(0.0, 1.0)


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
    priority: tuple[int, ...] | None
    """The first of these devices that can run does; None: devices take turns at random."""
    speeds: tuple[float, ...]
    mean_turn: float
    """Steps that a device runs before the next may."""

    def order(self) -> tuple[int, ...]:
        """The order in which the devices may go on."""
        if self.priority is not None:
            return self.priority
        arrivals = sorted((self.chance.expovariate(speed), device) for device, speed in enumerate(self.speeds))
        return tuple(device for _, device in arrivals)

    def turn(self) -> int:
        """Steps until the next device may run."""
        if self.priority is not None:
            return MORE_THAN_ANY_PROGRAM
        return 1 + int(self.chance.expovariate(1.0) * self.mean_turn)


def timing(seed: int, devices: int) -> Timing:
    """The timing of a seed.

    First come, for each device in turn, the runs in which the others are as far ahead of it as they can get:
    with transfers at their latest, at their soonest, and read at their soonest but written at their latest.
    """
    chance = random.Random(seed)
    extremes = list(product(((LATE, LATE), (SOON, SOON), (SOON, LATE)), reversed(range(devices))))
    if seed < len(extremes):
        (reading, writing), last = extremes[seed]
        priority = (*(device for device in range(devices) if device != last), last)
        return Timing(chance, reading, writing, True, True, priority, (1.0,) * devices, 1.0)
    ranks = list(range(devices))
    chance.shuffle(ranks)
    return Timing(
        chance,
        _haste(chance),
        _haste(chance),
        newest_first=chance.random() < 0.3,
        transfers_first=chance.random() < 0.5,
        priority=tuple(ranks) if devices == 1 or chance.random() < 0.4 else None,
        speeds=tuple(chance.choice((1.0, 1.0, 10.0, 1000.0)) for _ in ranks),
        mean_turn=chance.choice((0.0, 3.0, 30.0, 1000.0)),
    )


def _haste(chance: random.Random) -> Haste:
    at_once, at_last = chance.choice(((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.3, 0.3), (0.1, 0.6), (0.6, 0.1)))
    return Haste(at_once, at_last, chance.choice((2.0, 10.0, 50.0, 300.0)))
