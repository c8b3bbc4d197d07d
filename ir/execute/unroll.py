"""Loops, guards and switches of one device resolved for given scalars: the steps that it executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from schedc.ir.execute.fault import Fault, IllegalError, refuse
from schedc.ir.execute.operands import Operands
from schedc.ir.execute.steps import Copy, Give, Meet, Place, Step, Take, Work
from schedc.ir.execute.values import Value
from schedc.ir.program import (
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    RemoteStart,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)

STEP_LIMIT = 200_000
"""Steps and loop iterations of one device, after which a program is too long to run."""

Run = Callable[[], None]


class Unrolled(NamedTuple):
    steps: list[Step]
    places: list[Place]
    fault: Fault | None
    """Why it goes no further, if something in the program means nothing."""


def unroll(program: Program, scalars: Mapping[str, Sequence[int]], rank: int, draw: int = 0) -> Unrolled:
    """What device `rank` executes; `draw` is the seed of the scalars that computations set."""
    unrolling = _Unrolling(program, scalars, rank, draw)
    fault = None
    try:
        unrolling.block(program.body)()
    except IllegalError as error:
        fault = Fault(error.kind, len(unrolling.steps), f"{error.what}: {unrolling.at}", rank)
    return Unrolled(unrolling.steps, unrolling.places, fault)


class _Unrolling:
    """Makes of each operation a function that appends the steps it executes."""

    def __init__(self, program: Program, scalars: Mapping[str, Sequence[int]], rank: int, draw: int) -> None:
        self.steps: list[Step] = []
        self.places: list[Place] = []
        self.at: Place | None = None
        """The operation that means nothing."""
        self._operands = Operands(program, scalars, rank, draw)
        self._values = self._operands.values
        self._rank = rank
        self._iteration: Mapping[str, int] = {}
        """A copy of the counters, shared by the steps of one iteration."""
        self._left = STEP_LIMIT
        self._barriers = 0

    def block(self, ops: Sequence[Op]) -> Run:
        runs = [(op, self._compile(op)) for op in ops]

        def run() -> None:
            for op, execute in runs:
                try:
                    execute()
                except IllegalError:
                    self.at = self.at or Place(op, self._iteration)
                    raise

        return run

    def _compile(self, op: Op) -> Run:
        match op:
            case Phase(_, body) | Case(_, body):
                return self.block(body)
            case Loop():
                return self._loop(op)
            case When():
                return self._when(op)
            case Switch():
                return self._switch(op)
            case SetScalar(array, index, value):
                element, result = self._values.compile(index), self._values.compile(value)
                return lambda: self._values.assign(array, element(), result())
            case _:
                return self._append(op, self._step(op))

    def _loop(self, loop: Loop) -> Run:
        trips, body = self._values.compile(loop.trips), self.block(loop.body)
        name, counters = loop.counter, self._values.counters

        def run() -> None:
            outside = self._iteration
            for i in range(trips()):
                self._spend()
                counters[name] = i
                self._iteration = dict(counters)
                body()
            self._iteration = outside
            counters.pop(name, None)
            counters.update(outside)

        return run

    def _when(self, when: When) -> Run:
        conditions = [self._values.holds(condition) for condition in when.conditions]
        body = self.block(when.body)

        def run() -> None:
            for condition in conditions:
                if not condition():
                    return
            body()

        return run

    def _switch(self, switch: Switch) -> Run:
        selector = self._values.compile(switch.selector)
        bodies = {case.value: self.block(case.body) for case in switch.body}

        def run() -> None:
            value = selector()
            if value not in bodies:
                refuse("no-case", f"there is no case {value}")
            bodies[value]()

        return run

    def _append(self, op: Op, step: Callable[[], Step]) -> Run:
        steps, places = self.steps, self.places

        def run() -> None:
            self._spend()
            steps.append(step())
            places.append(Place(op, self._iteration))

        return run

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            refuse("too-long", f"more than {STEP_LIMIT} operations and iterations")

    def _step(self, op: Op) -> Callable[[], Step]:
        semaphore = self._operands.semaphore
        match op:
            case Wait(_, amount) | Await(_, amount) | Signal(_, amount) if amount < 0:
                return lambda: refuse("out-of-range", f"an amount of {amount}")
            case Start(source, target, ref):
                ends, arrived, rank = self._operands.pair(source, target), semaphore(ref), self._rank
                return lambda: Copy(*ends(), rank, None, arrived())
            case RemoteStart(source, target, to, sent, ref):
                ends, peer = self._operands.pair(source, target), self._operands.peer(to)
                left, arrived = semaphore(sent), semaphore(ref)
                return lambda: Copy(*ends(), peer(), left(), arrived())
            case Wait(ref, amount) | Await(ref, amount):
                own = semaphore(ref)
                return lambda: Take(own(), amount)
            case Signal(ref, amount, to):
                given, peer = semaphore(ref), self._own if to is None else self._operands.peer(to)
                return lambda: Give(given(), amount, peer())
            case Barrier():
                return self._meet
            case Compute():
                return self._work(op)
            case _:
                raise TypeError(f"not an operation: {op}")

    def _own(self) -> int:
        return self._rank

    def _meet(self) -> Meet:
        self._barriers += 1
        return Meet(self._barriers)

    def _work(self, op: Compute) -> Callable[[], Work]:
        reads = [self._operands.rows(operand.region) for operand in op.operands if operand.reads]
        writes = [self._operands.rows(operand.region) for operand in op.operands if operand.writes]
        scalars: list[Value] = [self._values.compile(value) for _, value in op.scalars]

        def work() -> Work:
            for scalar in scalars:
                scalar()
            for _, array in op.sets:
                self._values.compute(array)
            return Work(tuple([rows() for rows in reads]), tuple([rows() for rows in writes]))

        return work
