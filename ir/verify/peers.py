"""What other devices do to one, by number of the events of communication that it has executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from schedc.ir.verify.in_flight import InFlight
from schedc.ir.verify.linear import Lin, Value, add, sub
from schedc.ir.verify.state import State, Transfer, transfer_shape

Schedule = Mapping[int, Sequence[Transfer]]
Reach = Callable[[Value], tuple[int, int]]


@dataclass(frozen=True)
class Peers:
    arriving: Schedule = field(default_factory=dict)
    """Transfers that peers may start from then on."""
    read: Schedule = field(default_factory=dict)
    """Transfers of this device whose source has then been read, since a peer has waited for them."""

    def repeats(self, first: int, events: int, most: int) -> int:
        """How often they do the same again, at most `most` times, every `events` events from the event `first` + 1 on.

        The same but for numbers that grow each time by as much as the first time. Once at least, or 0.
        """
        for schedule in (self.arriving, self.read):
            for number in range(first + 1, first + events + 1):
                most = _repeats(schedule, number, events, most)
        return most

    def general(self, first: int, events: int, atom: int, reach: Reach) -> Peers:
        """What they do in the `events` events after `first`, and `atom` times that many events later."""
        arriving, read = (
            {
                number: _general(schedule, number, events, atom, reach)
                for number in range(first + 1, first + events + 1)
                if number in schedule
            }
            for schedule in (self.arriving, self.read)
        )
        return Peers(arriving, read)


def _repeats(schedule: Schedule, number: int, events: int, most: int) -> int:
    before, steps = schedule.get(number, ()), None
    for time in range(1, most + 1):
        later = schedule.get(number + time * events, ())
        found: list[Value] | None = [] if len(before) == len(later) else None
        for mine, theirs in zip(before, later, strict=False):
            if found is None or transfer_shape(mine) != transfer_shape(theirs):
                return time - 1
            found += [sub(b, a) for a, b in zip(_values(mine), _values(theirs), strict=True)]
        if found is None or not all(type(step) is int for step in found) or (time > 1 and found != steps):
            return time - 1
        before, steps = later, found
    return most


def _values(t: Transfer) -> list[Value]:
    """Every number of a transfer."""
    when, guard = [value for _, value in t.counters], [value for _, value in t.guard]
    return [t.source.base, t.target.base, *when, *guard]


def _general(schedule: Schedule, number: int, events: int, atom: int, reach: Reach) -> list[Transfer]:
    now, later = (State(reach, transfers=InFlight(schedule.get(at, ()))) for at in (number, number + events))
    steps = iter([sub(b, a) for a, b in zip(now.values(), later.values(), strict=True)])

    def moving(value: Value) -> Value:
        step = next(steps)
        assert type(step) is int
        return add(value, Lin(0, ((atom, step),))) if step else value

    return now.map(moving).transfers
