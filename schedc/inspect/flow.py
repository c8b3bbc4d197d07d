"""Every transfer of a step from what allowed it, over its start and its wait, to its first use, with the times.

The operations come from `execution`, their times from the simulation. A wait takes what its semaphore holds in the
order in which the transfers were started; it is the wait of those that it takes the last rows of.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.cost.timeline import Event, Timeline
from schedc.inspect.execution import Executed, Rows, execute
from schedc.inspect.numbered import Numbered
from schedc.ir.program import Await, Compute, Program, RemoteStart, Start, Wait


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
    times: Sequence[tuple[float, float] | None]
    """Of every executed operation, begin and end; None for what takes no time of its own."""
    moved: tuple[Moved, ...]

    def end_ns(self, place: int) -> float:
        """When an operation ended, or the last before it that has a time."""
        for at in range(place, -1, -1):
            found = self.times[at]
            if found is not None:
                return found[1]
        return 0.0


def flow_of(program: Program, machine: Machine, inputs: Mapping[str, Sequence[int]] | None = None) -> Flow:
    """Simulate a step with `inputs`, as `simulate` takes them, and follow its transfers."""
    timeline = simulate(program, machine, inputs, events=True)
    numbered, executed = Numbered(program), execute(program, inputs)
    return _Follow(numbered, timeline, executed).flow()


class _Follow:
    def __init__(self, numbered: Numbered, timeline: Timeline, executed: list[Executed]) -> None:
        self.numbered, self.timeline, self.executed = numbered, timeline, executed
        self.events = _by_operation(timeline.events)
        self.buffers = {buffer.name for buffer in numbered.program.buffers}
        self.needed = {
            number: numbered.needs_scalars(number)
            for number, placed in enumerate(numbered.ops)
            if isinstance(placed.op, (Start, RemoteStart))
        }
        self.touched = _Last()
        self.wrote = _Last()
        self.set: dict[str, int] = {}
        self.moved: list[Moved] = []
        self.waiting: dict[str, deque[list[int]]] = defaultdict(deque)
        """By semaphore, [place in `moved`, rows that no wait has taken], in the order of the starts."""
        self.unused: dict[str, list[tuple[int, Rows]]] = defaultdict(list)
        """By buffer, transfers that have arrived and that nothing has read."""
        self.busy_until = 0.0

    def flow(self) -> Flow:
        times: list[tuple[float, float] | None] = []
        for place, done in enumerate(self.executed):
            op = self.numbered.ops[done.op].op
            event = next(self.events[done.op], None) if done.op in self.events else None
            times.append(None if event is None else (event.began_ns, event.ended_ns))
            if isinstance(op, (Start, RemoteStart)):
                assert event is not None
                times[-1] = (event.issued_ns, event.issued_ns)
                self._start(place, done, event)
            elif isinstance(op, (Wait, Await)):
                assert event is not None
                self._wait(place, done, event)
            elif isinstance(op, Compute):
                self._compute(place, done)
            self.set |= dict.fromkeys(done.sets, place)
        return Flow(self.numbered, self.timeline, self.executed, times, tuple(self.moved))

    def _start(self, place: int, done: Executed, event: Event) -> None:
        inward = [rows for rows in done.writes if rows.storage in self.buffers]
        outward = [rows for rows in done.reads if rows.storage in self.buffers]
        freed = [self.touched.over(rows) for rows in inward] + [self.wrote.over(rows) for rows in outward]
        known = [self.set[array] for array in self.needed[done.op] if array in self.set]
        idle = max(0.0, event.issued_ns - self.busy_until) if event.lane == "hbm" else 0.0
        if event.lane == "hbm":
            self.busy_until = max(self.busy_until, event.ended_ns)
        self.waiting[done.signals].append([len(self.moved), done.amount])
        self.moved.append(
            Moved(
                place,
                event.issued_ns,
                event.began_ns,
                event.ended_ns,
                event.bytes,
                _latest(freed),
                max(known, default=None),
                idle,
            )
        )

    def _wait(self, place: int, done: Executed, event: Event) -> None:
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
            stall = event.ended_ns - event.began_ns if index == last else 0.0
            self.moved[index] = replace(self.moved[index], wait=place, reached_ns=event.began_ns, stall_ns=stall)
            for rows in self.executed[self.moved[index].at].writes:
                if rows.storage in self.buffers:
                    self.unused[rows.storage].append((index, rows))

    def _compute(self, place: int, done: Executed) -> None:
        for rows in done.reads:
            arrived = self.unused.get(rows.storage)
            if arrived:
                kept = []
                for index, written in arrived:
                    if _overlap(rows, written):
                        self.moved[index] = replace(self.moved[index], use=place)
                    else:
                        kept.append((index, written))
                self.unused[rows.storage] = kept
        for rows in (*done.reads, *done.writes):
            self.touched.put(rows, place)
        for rows in done.writes:
            self.wrote.put(rows, place)


class _Last:
    """By range of rows the last operation that was put there."""

    def __init__(self) -> None:
        self._places: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)

    def put(self, rows: Rows, place: int) -> None:
        self._places[rows.storage][rows.first, rows.end] = place

    def over(self, rows: Rows) -> int | None:
        found = self._places.get(rows.storage, {})
        return _latest(place for (first, end), place in found.items() if first < rows.end and rows.first < end)


def _latest(places: Iterable[int | None]) -> int | None:
    return max((place for place in places if place is not None), default=None)


def _overlap(a: Rows, b: Rows) -> bool:
    return a.first < b.end and b.first < a.end


def _by_operation(events: Sequence[Event]):
    """Iterators over the events of an operation in the order of its executions; stalls aside, which waits contain."""
    found: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event.lane != "stall":
            found[event.op].append(event)
    return {number: iter(sorted(of_op, key=lambda event: event.issued_ns)) for number, of_op in found.items()}
