"""What device 0 executes in one step, operation after operation: with the storage it touches, in slots and rows.

The scalars are those that the simulation takes, so that the k-th execution of an operation is the k-th of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schedc.cost.inputs import default_inputs
from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
from schedc.ir.program import (
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)


class Rows(NamedTuple):
    """Rows `first` to `end` of a storage; of a buffer counted over all its slots."""

    storage: str
    first: int
    end: int


class Executed(NamedTuple):
    """An operation that was executed. `op` counts in the order of `program.walk`."""

    op: int
    phase: str
    iteration: tuple[tuple[str, int], ...]
    """Counters of the loops around it, outermost first."""
    reads: tuple[Rows, ...] = ()
    writes: tuple[Rows, ...] = ()
    signals: str = ""
    """The semaphore that it gives to or takes from, as in `arrived[3]`."""
    amount: int = 0
    sent: str = ""
    """Of a transfer to another device, the semaphore that says that it has left."""
    sets: tuple[str, ...] = ()
    """Scalar arrays."""


def execute(program: Program, inputs: Mapping[str, Sequence[int]] | None = None) -> list[Executed]:
    """All leaf operations of a step, in the order of execution. `inputs` as for `simulate`."""
    given = default_inputs(program) | {name: list(values) for name, values in (inputs or {}).items()}
    return _Execution(program, given).run()


Run = Callable[[], None]
Value = Callable[[], int]


@dataclass
class _Execution:
    program: Program
    inputs: Mapping[str, list[int]]
    done: list[Executed] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.program
        self.scalars = {
            s.name: list(self.inputs.get(s.name) or list(s.values) or [s.low] * s.length) for s in program.scalars
        }
        self.rows = {buffer.name: buffer.rows for buffer in program.buffers}
        self.single = {semaphore.name for semaphore in program.semaphores if semaphore.count == 1}
        self.counters: dict[str, int] = {}
        self.iteration: tuple[tuple[str, int], ...] = ()
        self.compiled = 0

    def run(self) -> list[Executed]:
        for run in self._block(self.program.body, ""):
            run()
        return self.done

    def _block(self, ops: Sequence[Op], phase: str) -> list[Run]:
        return [self._compile(op, phase) for op in ops]

    def _compile(self, op: Op, phase: str) -> Run:
        number = self.compiled
        self.compiled += 1
        match op:
            case Phase(name, body):
                return _all(self._block(body, name))
            case Case(_, body):
                return _all(self._block(body, phase))
            case Loop():
                return self._loop(op, phase)
            case When(conditions, body):
                holds, runs = self._holds(conditions), _all(self._block(body, phase))
                return lambda: runs() if holds() else None
            case Switch(selector, cases):
                value = self._value(selector)
                bodies = {case.value: self._compile(case, phase) for case in cases}
                return lambda: bodies[value()]()
            case SetScalar(array, index, result):
                elements, at, value = self.scalars[array], self._value(index), self._value(result)

                def assign() -> None:
                    elements[at()] = value()
                    self.done.append(Executed(number, phase, self.iteration, sets=(array,)))

                return assign
            case _:
                return self._leaf(op, number, phase)

    def _loop(self, op: Loop, phase: str) -> Run:
        trips, name = self._value(op.trips), op.counter
        body = _all(self._block(op.body, phase))

        def run() -> None:
            outside = self.iteration
            for value in range(trips()):
                self.counters[name] = value
                self.iteration = (*outside, (name, value))
                body()
            self.iteration = outside

        return run

    def _leaf(self, op: Op, number: int, phase: str) -> Run:
        match op:
            case Start(source, target, ref):
                read, written, signals, amount = (
                    self._rows(source),
                    self._rows(target),
                    self._semaphore(ref),
                    source.rows,
                )
                return lambda: self.done.append(
                    Executed(number, phase, self.iteration, (read(),), (written(),), signals(), amount)
                )
            case RemoteStart(source, _, _, sent, arrived):
                read, left, there = self._rows(source), self._semaphore(sent), self._semaphore(arrived)
                rows = source.rows
                return lambda: self.done.append(
                    Executed(number, phase, self.iteration, (read(),), (), there(), rows, left())
                )
            case Wait(ref, amount) | Await(ref, amount) | Signal(ref, amount):
                signals = self._semaphore(ref)
                return lambda: self.done.append(
                    Executed(number, phase, self.iteration, signals=signals(), amount=amount)
                )
            case Barrier():
                return lambda: self.done.append(Executed(number, phase, self.iteration))
            case Compute():
                return self._compute(op, number, phase)
            case _:
                raise TypeError(f"not an operation: {op}")

    def _compute(self, op: Compute, number: int, phase: str) -> Run:
        reads = [self._rows(operand.region) for operand in op.operands if operand.access != "write"]
        writes = [self._rows(operand.region) for operand in op.operands if operand.access != "read"]
        sets = tuple(array for _, array in op.sets)

        def run() -> None:
            for array in sets:
                self.scalars[array][:] = self.inputs[array]
            self.done.append(
                Executed(
                    number,
                    phase,
                    self.iteration,
                    tuple([rows() for rows in reads]),
                    tuple([rows() for rows in writes]),
                    sets=sets,
                )
            )

        return run

    def _rows(self, region: Region) -> Callable[[], Rows]:
        offset, slot = self._value(region.offset), self._value(region.slot)
        storage, count, each = region.storage, region.rows, self.rows.get(region.storage, 0)

        def find() -> Rows:
            first = slot() * each + offset()
            return Rows(storage, first, first + count)

        return find

    def _semaphore(self, ref: SemaphoreRef) -> Callable[[], str]:
        name, index = ref.name, self._value(ref.index)
        return (lambda: name) if name in self.single else (lambda: f"{name}[{index()}]")

    def _value(self, expr: Expr) -> Value:
        if isinstance(expr, Const):
            value = expr.value
            return lambda: value
        return self._function(_text(expr))

    def _holds(self, conditions: tuple[Compare, ...]) -> Value:
        return self._function(" and ".join(f"{_text(c.left)} {c.op} {_text(c.right)}" for c in conditions) or "True")

    def _function(self, text: str) -> Value:
        """`text` has only integers, operators and names that are strings."""
        function: Value = eval(f"lambda: {text}", {"c": self.counters, "s": self.scalars, "min": min, "max": max})
        return function


def _all(runs: list[Run]) -> Run:
    def run() -> None:
        for each in runs:
            each()

    return run


def _text(expr: Expr) -> str:
    match expr:
        case Const(value):
            return f"({value})"
        case Counter(name):
            return f"c[{name!r}]"
        case Rank():
            return "(0)"
        case Element(array, index):
            return f"s[{array!r}][{_text(index)}]"
        case Binary("min" | "max" as op, left, right):
            return f"{op}({_text(left)}, {_text(right)})"
        case Binary(op, left, right):
            return f"({_text(left)} {op} {_text(right)})"
