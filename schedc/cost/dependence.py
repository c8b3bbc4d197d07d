"""The longest chain of dependent computations and exchanges of a step: what no order of them can beat.

Every operation of a traced step is taken to begin when what it reads has been written: rows by the last write to them
before it in program order, wherever their buffer lies, and the scalars that its addresses, its values or its being
executed depend on. Nothing else holds it: neither the core, which all independent work has for itself, nor slots that
are not free, nor HBM bandwidth, nor links that are busy. What is left is

- of a computation, its cycles;
- of a transfer of the HBM, its issue and its latency;
- of a message, its issue, its latency, its own time on the link, and the lateness of the peer. Other devices do the
  same at the same time, so what arrives was sent when the same was sent from here.

`compute=False` takes computations for nothing, and the HBM too: the chain of exchanges that wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schedc.cost.rows import NEVER, Mark, RowMarks
from schedc.cost.trace import Executed, Flight, Trace


@dataclass(frozen=True)
class Chain:
    """Its length in ns, how many operations are on it, and the time by kind: of computation, `exchange`, `HBM`."""

    ns: float = 0.0
    operations: int = 0
    parts: Mapping[str, float] | None = None


def longest_chain(trace: Trace, compute: bool = True) -> Chain:
    """The chain that ends last. The trace is of a program whose waits order what depends on each other."""
    rows, scalars = RowMarks(), dict[str, Mark]()
    parents: list[int] = []
    costs: list[float] = []
    last: Mark = NEVER
    for place, done in enumerate(trace.executed):
        begin = max(
            (*(rows.latest(span) for span in done.reads), *(scalars.get(name, NEVER) for name in done.needs)),
            default=NEVER,
        )
        cost = _cost(done, compute)
        end = (begin[0] + cost, place)
        parents.append(begin[1])
        costs.append(cost)
        for span in done.writes:
            rows.put(span, end)
        for name in done.sets:
            scalars[name] = end
        last = max(last, end)
    return _chain(trace, last, parents, costs)


def _cost(done: Executed, compute: bool) -> float:
    flight = done.flight
    if flight is None:
        return done.ended - done.began if compute and done.computes else 0.0
    if flight.lane == "hbm" and not compute:
        return 0.0
    issue = done.ended - done.began if compute else 0.0
    return issue + _alone(flight)


def _alone(flight: Flight) -> float:
    """What it takes if nothing else is on its way."""
    return flight.latency + (flight.alone + flight.late if flight.lane != "hbm" else 0.0)


def _chain(trace: Trace, last: Mark, parents: list[int], costs: list[float]) -> Chain:
    parts: dict[str, float] = {}
    place, operations = last[1], 0
    while place >= 0:
        done = trace.executed[place]
        kind = done.name if done.flight is None else "HBM" if done.flight.lane == "hbm" else "exchange"
        if costs[place] > 0:
            parts[kind] = parts.get(kind, 0.0) + costs[place]
            operations += 1
        place = parents[place]
    return Chain(last[0], operations, dict(sorted(parts.items(), key=lambda part: (-part[1], part[0]))))
