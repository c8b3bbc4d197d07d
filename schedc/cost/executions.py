"""How often a step executes every operation of a program: every loop at its trips, every branch decided."""

from __future__ import annotations

from schedc.cost.inputs import Inputs, default_inputs
from schedc.ir.expr import Compare, Expr, evaluate, holds
from schedc.ir.program import Case, Compute, Loop, Op, Phase, Program, Switch, When, walk


def executions(program: Program, inputs: Inputs | None = None, rank: int = 0, copies: bool = False) -> tuple[int, ...]:
    """A number for every operation of `walk(program.body)`, in that order; of a loop, its trips in all.

    Unrolled loops count once, as what is in them is issued copy by copy, or with `copies` as any other. A `when` around
    transfers and waits is predicated by the compiler, not jumped over, and counts whether it holds or not; one around
    computations counts as often as it holds. `inputs` are scalar arrays in place of `default_inputs`; of what is no
    whole number, the nearest.
    """
    given = default_inputs(program) | dict(inputs or {})
    whole = {name: [round(value) for value in values] for name, values in given.items()}
    return _Counter(program, whole, rank, copies).run()


class _Counter:
    def __init__(self, program: Program, inputs: dict[str, list[int]], rank: int, copies: bool) -> None:
        self.body, self.rank, self.copies = program.body, rank, copies
        self.scalars = {s.name: list(inputs.get(s.name) or s.values or [s.low] * s.length) for s in program.scalars}
        self.sizes: dict[int, int] = {}
        self.counts = [0] * sum(1 for _ in walk(program.body))
        self.counters: dict[str, int] = {}

    def run(self) -> tuple[int, ...]:
        self._visit(self.body, 0)
        return tuple(self.counts)

    def _visit(self, ops: tuple[Op, ...], at: int) -> None:
        """Count `ops`, the first of which is number `at`."""
        for op in ops:
            self._count(op, at)
            at += self._size(op)

    def _count(self, op: Op, at: int) -> None:
        match op:
            case Loop(counter, trips, body, unroll):
                times = 1 if unroll and not self.copies else self._value(trips)
                for value in range(times):
                    self.counters[counter] = value
                    self.counts[at] += 1
                    self._visit(body, at + 1)
            case When(conditions, body):
                self.counts[at] += 1
                if not _computes(body) or all(self._holds(condition) for condition in conditions):
                    self._visit(body, at + 1)
            case Switch(selector, cases):
                self.counts[at] += 1
                selected = self._value(selector)
                place = at + 1
                for case in cases:
                    if case.value == selected:
                        self._count(case, place)
                    place += self._size(case)
            case Phase() | Case():
                self.counts[at] += 1
                self._visit(op.body, at + 1)
            case _:
                self.counts[at] += 1

    def _size(self, op: Op) -> int:
        """Operations in it, with itself."""
        if not isinstance(op, Loop | When | Switch | Phase | Case):
            return 1
        if id(op) not in self.sizes:
            inside = op.body
            self.sizes[id(op)] = 1 + sum(self._size(inner) for inner in inside)
        return self.sizes[id(op)]

    def _value(self, expr: Expr) -> int:
        return evaluate(expr, self.counters.__getitem__, self._element, self.rank)

    def _holds(self, condition: Compare) -> bool:
        return holds(condition, self.counters.__getitem__, self._element, self.rank)

    def _element(self, array: str, index: int) -> int:
        return self.scalars[array][index]


def _computes(ops: tuple[Op, ...]) -> bool:
    return any(isinstance(op, Compute) for op in walk(ops))
