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
from schedc.cost.trace import Executed, Trace


@dataclass(frozen=True)
class Chain:
    """Its length in ns, how many operations are on it, and the time by kind: of computation, `exchange`, `HBM`."""

    ns: float = 0.0
    operations: int = 0
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Dependences:
    """What every operation of a trace depends on, and what it takes, by its place in the trace."""

    trace: Trace
    parents: tuple[tuple[int, ...], ...]
    """The places of the operations that wrote what it reads."""
    work: tuple[float, ...]
    """What it takes of the core, ns."""
    lag: tuple[float, ...]
    """What passes between its end on the core and that what it writes is there, ns."""


def dependences(trace: Trace) -> Dependences:
    """Read after write. The trace is of a program whose waits order what depends on each other."""
    rows, scalars = RowMarks(), dict[str, int]()
    parents: list[tuple[int, ...]] = []
    for place, done in enumerate(trace.executed):
        found = {writer for span in done.reads for _, writer in rows.every(span)}
        found.update(scalars[name] for name in done.needs if name in scalars)
        parents.append(tuple(sorted(found)))
        for span in done.writes:
            rows.put(span, (0.0, place))
        for name in done.sets:
            scalars[name] = place
    executed = trace.executed
    return Dependences(trace, tuple(parents), tuple(map(_work, executed)), tuple(map(_lag, executed)))


def longest_chain(known: Dependences, compute: bool = True) -> Chain:
    """The chain that ends last."""
    last: Mark = NEVER
    ends: list[float] = []
    before: list[int] = []
    for place, parents in enumerate(known.parents):
        begin = max(((ends[parent], parent) for parent in parents), default=NEVER)
        ends.append(begin[0] + _cost(known, place, compute))
        before.append(begin[1])
        last = max(last, (ends[place], place))
    return _chain(known, last, before, compute)


def _work(done: Executed) -> float:
    return done.ended - done.began if done.computes or done.flight is not None else 0.0


def _lag(done: Executed) -> float:
    """What a transfer or message takes if nothing else is on its way."""
    flight = done.flight
    if flight is None:
        return 0.0
    return flight.latency + (flight.alone + flight.late if flight.lane != "hbm" else 0.0)


def _cost(known: Dependences, place: int, compute: bool) -> float:
    if compute:
        return known.work[place] + known.lag[place]
    flight = known.trace.executed[place].flight
    return known.lag[place] if flight is not None and flight.lane != "hbm" else 0.0


def _chain(known: Dependences, last: Mark, before: list[int], compute: bool) -> Chain:
    parts: dict[str, float] = {}
    place, operations = last[1], 0
    while place >= 0:
        done = known.trace.executed[place]
        kind = done.name if done.flight is None else "HBM" if done.flight.lane == "hbm" else "exchange"
        cost = _cost(known, place, compute)
        if cost > 0:
            parts[kind] = parts.get(kind, 0.0) + cost
            operations += 1
        place = before[place]
    return Chain(last[0], operations, dict(sorted(parts.items(), key=lambda part: (-part[1], part[0]))))
