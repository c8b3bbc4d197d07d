"""Every transfer of a step from what allowed it, over its start and its wait, to its first use, with the times.

The operations come from `execution`, their times from the simulation. A wait takes what its semaphore holds in the
order in which the transfers were started; it is the wait of those that it takes the last rows of.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.timeline import Timeline
from schedc.cost.trace import Span
from schedc.inspect.execution import Executed, execute
from schedc.inspect.numbered import Numbered
from schedc.ir.program import ROW_BYTES, Await, Compute, Program, RemoteStart, Start, Wait


@dataclass(frozen=True)
class Moved:
    """One execution of a transfer. Numbers without a unit are places in `Flow.executed`. Times in ns."""

    at: int
    issued_ns: float
    began_ns: float
    ended_ns: float
    bytes: int
    freed: int | None = None
    """The last computation that touched what it writes; of what goes out of VMEM, the last that wrote it."""
    known: int | None = None
    """What set the last of the scalars that its address or its guards depend on."""
    idle_ns: float = 0.0
    """How long nothing had been in flight between HBM and VMEM when it was issued."""
    wait: int | None = None
    reached_ns: float = 0.0
    """When the core came to the wait."""
    stall_ns: float = 0.0
    """How long the core waited for this one, the last that its wait needed."""
    use: int | None = None

    @property
    def early_ns(self) -> float | None:
        """How long it had been there when it was asked for; below 0: it came so much too late."""
        return None if self.wait is None else self.reached_ns - self.ended_ns


@dataclass(frozen=True, eq=False)
class Flow:
    numbered: Numbered
    timeline: Timeline
    executed: Sequence[Executed]
    moved: tuple[Moved, ...]
    stalls: Mapping[int, float]
    """By place in `executed`, how long the core was blocked in a wait, in ns."""


def flow_of(
    program: Program, machine: Machine, inputs: Inputs | None = None, lines: tuple[int, ...] | None = None
) -> Flow:
    """Simulate a step with `inputs`, as `simulate` takes them, and follow its transfers. `lines` as in `Numbered`."""
    timeline, executed = execute(program, machine, inputs)
    return _Follow(Numbered(program, lines), timeline, executed).flow()


class _Follow:
    def __init__(self, numbered: Numbered, timeline: Timeline, executed: list[Executed]) -> None:
        self.numbered, self.timeline, self.executed = numbered, timeline, executed
        self.arrays = {array.name for array in numbered.program.arrays}
        self.touched = _Last()
        self.wrote = _Last()
        self.set: dict[str, int] = {}
        self.moved: list[Moved] = []
        self.stalls: dict[int, float] = {}
        self.waiting: dict[str, deque[list[int]]] = defaultdict(deque)
        """By semaphore, [place in `moved`, rows that no wait has taken], in the order of the starts."""
        self.unused: dict[str, list[tuple[int, Span]]] = defaultdict(list)
        """By pool, transfers that have arrived and that nothing has read."""
        self.busy_until = 0.0

    def flow(self) -> Flow:
        for place, done in enumerate(self.executed):
            op = self.numbered.ops[done.op].op
            if isinstance(op, (Start, RemoteStart)):
                self._start(place, done)
            elif isinstance(op, (Wait, Await)):
                self._wait(place, done)
            elif isinstance(op, Compute):
                self._compute(place, done)
            self.set |= dict.fromkeys(done.sets, place)
        return Flow(self.numbered, self.timeline, self.executed, tuple(self.moved), self.stalls)

    def _start(self, place: int, done: Executed) -> None:
        flight = done.flight
        assert flight is not None, "a start"
        inward, outward = self._in_vmem(done.writes), self._in_vmem(done.reads)
        freed = [self.touched.over(rows) for rows in inward] + [self.wrote.over(rows) for rows in outward]
        known = [self.set[array] for array in done.needs if array in self.set]
        idle = max(0.0, flight.issued - self.busy_until) if flight.lane == "hbm" else 0.0
        if flight.lane == "hbm":
            self.busy_until = max(self.busy_until, flight.ended)
        self.waiting[done.signals].append([len(self.moved), done.amount])
        self.moved.append(
            Moved(
                place,
                flight.issued,
                flight.began,
                flight.ended,
                done.amount * ROW_BYTES,
                _latest(freed),
                max(known, default=None),
                idle,
            )
        )

    def _wait(self, place: int, done: Executed) -> None:
        self.stalls[place] = done.stall_ns
        left, queue = done.amount, self.waiting[done.signals]
        finished: list[int] = []
        while left > 0 and queue:
            taken = min(left, queue[0][1])
            left -= taken
            queue[0][1] -= taken
            if queue[0][1] == 0:
                finished.append(queue.popleft()[0])
        last = max(finished, key=lambda index: self.moved[index].ended_ns, default=None)
        for index in finished:
            moved = self.moved[index]
            stall = self.stalls[place] if index == last else 0.0
            self.moved[index] = replace(moved, wait=place, reached_ns=done.reached_ns, stall_ns=stall)
            for span in self._in_vmem(self.executed[moved.at].writes):
                self.unused[span[0]].append((index, span))

    def _in_vmem(self, spans: Iterable[Span]) -> list[Span]:
        return [span for span in spans if span[0] not in self.arrays]

    def _compute(self, place: int, done: Executed) -> None:
        for span in done.reads:
            arrived = self.unused.get(span[0])
            if arrived:
                kept = []
                for index, written in arrived:
                    if _overlap(span, written):
                        self.moved[index] = replace(self.moved[index], use=place)
                    else:
                        kept.append((index, written))
                self.unused[span[0]] = kept
        for span in (*done.reads, *done.writes):
            self.touched.put(span, place)
        for span in done.writes:
            self.wrote.put(span, place)


class _Last:
    """By range of rows the last operation that was put there."""

    def __init__(self) -> None:
        self._places: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)

    def put(self, span: Span, place: int) -> None:
        storage, first, end = span
        self._places[storage][first, end] = place

    def over(self, span: Span) -> int | None:
        storage, low, high = span
        found = self._places.get(storage, {})
        return _latest(place for (first, end), place in found.items() if first < high and low < end)


def _latest(places: Iterable[int | None]) -> int | None:
    return max((place for place in places if place is not None), default=None)


def _overlap(a: Span, b: Span) -> bool:
    return a[1] < b[2] and b[1] < a[2]
