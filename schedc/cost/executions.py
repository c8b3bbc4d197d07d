"""How often a step executes every operation of a program: every loop at its trips, every branch decided."""

from __future__ import annotations

from schedc.cost.inputs import Inputs, default_inputs, first_values
from schedc.ir.expr import Compare, Expr, evaluate, holds
from schedc.ir.program import BLOCKS, Case, Compute, Loop, Op, Phase, Program, SetScalar, Switch, When, numbered, walk


def executions(program: Program, inputs: Inputs | None = None, rank: int = 0, copies: bool = False) -> tuple[int, ...]:
    """A number for every operation of `walk(program.body)`, in that order; of a loop, its trips in all.

    Unrolled loops count once, as what is in them is issued copy by copy, or with `copies` as any other. A `when` around
    transfers and waits is predicated by the compiler, not jumped over, and counts whether it holds or not; one around
    computations counts as often as it holds. `inputs` are scalar arrays in place of `default_inputs`; of what is no
    whole number, the nearest.
    """
    return _Counter(program, default_inputs(program) | dict(inputs or {}), rank, copies).run()


def trips_about(program: Program) -> int:
    """Trips of all loops in a step without going through them: a loop inside of others as often as in their first or in
    their last trip, whichever is more."""
    scalars = first_values(program, default_inputs(program))

    def element(array: str, index: int) -> int:
        return scalars[array][min(max(index, 0), len(scalars[array]) - 1)]

    def inside(ops: tuple[Op, ...], first: dict[str, int], last: dict[str, int]) -> int:
        total = 0
        for op in ops:
            if isinstance(op, Loop):
                trips = max(0, *(evaluate(op.trips, at.__getitem__, element) for at in (first, last)))
                around = {**first, op.counter: 0}, {**last, op.counter: max(0, trips - 1)}
                total += trips * (1 + inside(op.body, *around))
            elif isinstance(op, BLOCKS):
                total += inside(op.body, first, last)
        return total

    return inside(program.body, {}, {})


class _Counter:
    def __init__(self, program: Program, inputs: Inputs, rank: int, copies: bool) -> None:
        self.body, self.rank, self.copies = program.body, rank, copies
        self.scalars = first_values(program, inputs)
        self.counts = [0] * program.size
        self.counters: dict[str, int] = {}

    def run(self) -> tuple[int, ...]:
        self._visit(self.body, 0)
        return tuple(self.counts)

    def _visit(self, ops: tuple[Op, ...], at: int, once: int = 1, acts: bool = True) -> None:
        """Count `ops`, the first of which is number `at`, `once` each; scalars are set only if it `acts`."""
        for number, op in numbered(ops, at):
            self._count(op, number, once, acts)

    def _count(self, op: Op, at: int, once: int, acts: bool) -> None:
        match op:
            case Loop(counter, trips, body, unroll):
                for value in range(self._value(trips)):
                    once = 0 if unroll and not self.copies and value else once
                    self.counters[counter] = value
                    self.counts[at] += once
                    self._visit(body, at + 1, once, acts)
            case When(conditions, body):
                self.counts[at] += once
                if all(self._holds(condition) for condition in conditions):
                    self._visit(body, at + 1, once, acts)
                elif not _computes(body):
                    self._visit(body, at + 1, once, acts=False)
            case Switch(selector, cases):
                self.counts[at] += once
                selected = self._value(selector)
                for number, case in numbered(cases, at + 1):
                    if case.value == selected:
                        self._count(case, number, once, acts)
            case Phase() | Case():
                self.counts[at] += once
                self._visit(op.body, at + 1, once, acts)
            case SetScalar(array, index, value):
                self.counts[at] += once
                if acts:
                    self.scalars[array][self._value(index)] = self._value(value)
            case _:
                self.counts[at] += once

    def _value(self, expr: Expr) -> int:
        return evaluate(expr, self.counters.__getitem__, self._element, self.rank)

    def _holds(self, condition: Compare) -> bool:
        return holds(condition, self.counters.__getitem__, self._element, self.rank)

    def _element(self, array: str, index: int) -> int:
        """What stands under a guard that does not hold is counted and not executed: its index may lie outside."""
        values = self.scalars[array]
        return values[min(max(index, 0), len(values) - 1)]


def _computes(ops: tuple[Op, ...]) -> bool:
    return any(isinstance(op, Compute) for op in walk(ops))
