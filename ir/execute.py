"""The dumb twin of the proof: run a program over small tagged memory with transfers at random times.

Every row that is written gets a tag of its own, and a transfer copies tags. The program's meaning is
the run in which each transfer happens at once when it starts and no two buffers share memory; its
reads are recorded. A timed run then lets each transfer read its source, write its target and add to
its semaphore at random times, in pieces, between its start and the wait that cannot do without it,
over the pool rows that were allocated, and compares.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schedc.ir.expr import Expr, evaluate, holds
from schedc.ir.program import (
    Await,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Wait,
    When,
)
from schedc.ir.text_print import print_op

NEVER = -1
"""Tag of a row that was never written."""

Rows = tuple[str, int, int]
"""Storage, first row counted from the storage's own first row, end row."""


@dataclass(frozen=True)
class Fault:
    kind: str
    """wrong-read, never-written, wrong-result, deadlock, unfinished, semaphore-left."""
    step: int
    """Index of the executed operation."""
    detail: str


@dataclass(frozen=True)
class _Step:
    kind: str
    text: str
    reads: tuple[Rows, ...] = ()
    writes: tuple[Rows, ...] = ()
    semaphore: tuple[str, int] = ("", 0)
    amount: int = 0


@dataclass(frozen=True)
class Trace:
    """The operations that one choice of scalars executes, in order, and the tags that each read should see."""

    program: Program
    steps: tuple[_Step, ...]
    expected: tuple[tuple[np.ndarray, ...], ...]
    tags: tuple[tuple[int, ...], ...]
    """First tag of each written region of each step."""
    final: Mapping[str, np.ndarray]
    initial: Mapping[str, np.ndarray]
    changed: frozenset[str]
    """Arrays that some step writes."""


def execute(program: Program, scalars: Mapping[str, Sequence[int]], seed: int) -> list[Fault]:
    """The faults of one run with random timing; `scalars` gives the input arrays."""
    return run(unfold(program, scalars), seed)


def unfold(program: Program, scalars: Mapping[str, Sequence[int]]) -> Trace:
    steps = tuple(_Unfolding(program, scalars).steps(program.body))
    memory, tag = _fresh(program)
    initial = {name: rows.copy() for name, rows in memory.items()}
    expected, tags = [], []
    for step in steps:
        reads = tuple(memory[name][first:end].copy() for name, first, end in step.reads)
        expected.append(reads)
        firsts = []
        for name, first, end in step.writes:
            firsts.append(tag)
            memory[name][first:end] = reads[0] if step.kind == "start" else np.arange(tag, tag + end - first)
            tag += end - first
        tags.append(tuple(firsts))
    changed = frozenset(name for step in steps for name, _, _ in step.writes)
    final = {array.name: memory[array.name] for array in program.arrays if array.name in changed}
    return Trace(program, steps, tuple(expected), tuple(tags), final, initial, changed)


def _fresh(program: Program) -> tuple[dict[str, np.ndarray], int]:
    memory: dict[str, np.ndarray] = {}
    tag = 0
    for array in program.arrays:
        if array.role == "output":
            memory[array.name] = np.full(array.rows, NEVER, np.int64)
        else:
            memory[array.name] = np.arange(tag, tag + array.rows, dtype=np.int64)
            tag += array.rows
    for buffer in program.buffers:
        memory[buffer.name] = np.full(buffer.rows * buffer.slots, NEVER, np.int64)
    return memory, tag


class _Unfolding:
    """Loops and guards resolved for given scalars."""

    def __init__(self, program: Program, scalars: Mapping[str, Sequence[int]]) -> None:
        self._scalars = {
            declared.name: list(scalars.get(declared.name, [declared.low] * declared.length))
            for declared in program.scalars
        }
        self._sizes = {buffer.name: buffer.rows for buffer in program.buffers}
        self._counters: dict[str, int] = {}

    def steps(self, ops: tuple[Op, ...]) -> list[_Step]:
        found: list[_Step] = []
        for op in ops:
            match op:
                case Loop(counter, trips, body):
                    for i in range(self._value(trips)):
                        self._counters[counter] = i
                        found += self.steps(body)
                case When(conditions, body):
                    if all(holds(c, self._counters.__getitem__, self._element) for c in conditions):
                        found += self.steps(body)
                case Phase(_, body):
                    found += self.steps(body)
                case SetScalar(array, index, value):
                    self._scalars[array][self._value(index)] = self._value(value)
                case _:
                    found.append(self._step(op))
        return found

    def _step(self, op: Op) -> _Step:
        text = f"{print_op(op)} with {self._counters}"
        match op:
            case Start(source, target, semaphore):
                copied = (self._rows(source),), (self._rows(target),)
                return _Step("start", text, *copied, self._semaphore(semaphore), source.rows)
            case Wait(semaphore, rows):
                return _Step("wait", text, semaphore=self._semaphore(semaphore), amount=rows)
            case Signal(semaphore, amount):
                return _Step("signal", text, semaphore=self._semaphore(semaphore), amount=amount)
            case Await(semaphore, amount):
                return _Step("await", text, semaphore=self._semaphore(semaphore), amount=amount)
            case Compute(_, operands):
                reads = tuple(self._rows(x.region) for x in operands if x.access != "write")
                writes = tuple(self._rows(x.region) for x in operands if x.access != "read")
                return _Step("compute", text, reads, writes)
            case _:
                raise TypeError(f"not a leaf operation: {op}")

    def _rows(self, region: Region) -> Rows:
        first = self._value(region.offset) + self._value(region.slot) * self._sizes.get(region.storage, 0)
        return region.storage, first, first + region.rows

    def _semaphore(self, ref: SemaphoreRef) -> tuple[str, int]:
        return ref.name, self._value(ref.index)

    def _value(self, expr: Expr) -> int:
        return evaluate(expr, self._counters.__getitem__, self._element)

    def _element(self, array: str, index: int) -> int:
        return self._scalars[array][index]


class _Flight:
    """A transfer on its way: `read` of its rows are out of the source, `wrote` are in the target."""

    def __init__(self, step: int, trace: Trace) -> None:
        self.step = step
        self.source, self.target = trace.steps[step].reads[0], trace.steps[step].writes[0]
        self.rows = self.source[2] - self.source[1]
        self.read = self.wrote = 0
        self.data = np.empty(self.rows, np.int64)


def run(trace: Trace, seed: int) -> list[Fault]:
    """The faults of one timed run of the trace."""
    return _Run(trace, seed).faults()


class _Run:
    def __init__(self, trace: Trace, seed: int) -> None:
        self._trace = trace
        self._random = random.Random(seed)
        self._haste = self._random.choice((0.0, 0.03, 0.2, 0.6, 1.0))
        """Chance that a transfer moves after an operation; at 0 only waits move them, at 1 they happen at once."""
        self._memory: dict[str, np.ndarray] = {}
        program = trace.program
        for array in program.arrays:
            rows = trace.initial[array.name]
            self._memory[array.name] = rows.copy() if array.name in trace.changed else rows
        pools = {pool.name: np.full(pool.rows, NEVER, np.int64) for pool in program.pools}
        for buffer in program.buffers:
            size = buffer.rows * buffer.slots
            if buffer.address is None:
                self._memory[buffer.name] = np.full(size, NEVER, np.int64)
            else:
                self._memory[buffer.name] = pools[buffer.pool][buffer.address : buffer.address + size]
        self._counts: dict[tuple[str, int], int] = defaultdict(int)
        self._flights: dict[tuple[str, int], list[_Flight]] = defaultdict(list)
        self._faults: list[Fault] = []

    def faults(self) -> list[Fault]:
        for i, step in enumerate(self._trace.steps):
            match step.kind:
                case "start":
                    self._flights[step.semaphore].append(_Flight(i, self._trace))
                case "compute":
                    self._compute(i, step)
                case "signal":
                    self._counts[step.semaphore] += step.amount
                case _:
                    if not self._wait(i, step):
                        return self._faults
            self._drift()
        self._finish()
        return self._faults

    def _compute(self, i: int, step: _Step) -> None:
        for (name, first, end), expected in zip(step.reads, self._trace.expected[i], strict=True):
            self._compare(i, self._memory[name][first:end], expected, name, first)
        for (name, first, end), tag in zip(step.writes, self._trace.tags[i], strict=True):
            self._memory[name][first:end] = np.arange(tag, tag + end - first)

    def _compare(self, i: int, actual: np.ndarray, expected: np.ndarray, name: str, first: int) -> None:
        if (expected == NEVER).any():
            self._fault("never-written", i, f"{name} from row {first}")
        elif not np.array_equal(actual, expected):
            row = first + int(np.argmax(actual != expected))
            self._fault("wrong-read", i, f"row {row} of {name}")

    def _fault(self, kind: str, i: int, what: str) -> None:
        text = self._trace.steps[i].text if i < len(self._trace.steps) else "the end"
        self._faults.append(Fault(kind, i, f"{what}: {text}"))

    def _wait(self, i: int, step: _Step) -> bool:
        flights = self._flights[step.semaphore]
        while self._counts[step.semaphore] < step.amount:
            if step.kind == "await" or not flights:
                self._fault("deadlock", i, f"{self._counts[step.semaphore]} of {step.amount}")
                return False
            self._move(step.semaphore, self._random.choice(flights))
        self._counts[step.semaphore] -= step.amount
        return True

    def _drift(self) -> None:
        if self._haste == 0.0:
            return
        for semaphore, flights in self._flights.items():
            for flight in list(flights):
                while self._random.random() < self._haste or self._haste == 1.0:
                    if self._move(semaphore, flight):
                        break

    def _move(self, semaphore: tuple[str, int], flight: _Flight) -> bool:
        """One step of a transfer: read a piece, write a piece, or complete (True)."""
        if flight.read < flight.rows:
            end = self._piece(flight.read, flight.rows)
            name, first, _ = flight.source
            actual = self._memory[name][first + flight.read : first + end]
            expected = self._trace.expected[flight.step][0][flight.read : end]
            self._compare(flight.step, actual, expected, name, first + flight.read)
            flight.data[flight.read : end] = actual
            flight.read = end
            return False
        if flight.wrote < flight.rows:
            end = self._piece(flight.wrote, flight.rows)
            name, first, _ = flight.target
            self._memory[name][first + flight.wrote : first + end] = flight.data[flight.wrote : end]
            flight.wrote = end
            return False
        self._counts[semaphore] += flight.rows
        self._flights[semaphore].remove(flight)
        return True

    def _piece(self, done: int, rows: int) -> int:
        return rows if self._random.random() < 0.7 else self._random.randint(done + 1, rows)

    def _finish(self) -> None:
        end = len(self._trace.steps)
        for flights in self._flights.values():
            for flight in flights:
                self._fault("unfinished", flight.step, "not awaited")
        for (name, index), count in sorted(self._counts.items()):
            if count:
                self._fault("semaphore-left", end, f"{name}[{index}] holds {count}")
        for name, expected in self._trace.final.items():
            if not np.array_equal(self._memory[name], expected):
                self._fault("wrong-result", end, name)
