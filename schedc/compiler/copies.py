"""A program as the TPU compiler sees it: loops once, unrolled loops copy by copy, no branch that tracing rules out."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.backends.pallas.emit.expressions import is_static
from schedc.ir.expr import Expr, evaluate, holds
from schedc.ir.program import Case, Loop, Op, Phase, Program, Switch, When, numbered


def traced_operations(program: Program) -> Iterator[tuple[int, Op]]:
    """Every operation of the kernel with its number in `walk(program.body)`, blocks before what is in them."""
    return _Traced(program).operations()


class _Traced:
    def __init__(self, program: Program) -> None:
        self._tables = {s.name: s.values for s in program.scalars if s.role == "table"}
        self._body = program.body

    def operations(self) -> Iterator[tuple[int, Op]]:
        return self._visit(self._body, 0, {})

    def _visit(self, ops: tuple[Op, ...], at: int, counters: dict[str, int]) -> Iterator[tuple[int, Op]]:
        """`ops`, the first of which is number `at`."""
        for number, op in numbered(ops, at):
            yield from self._one(op, number, counters)

    def _one(self, op: Op, at: int, counters: dict[str, int]) -> Iterator[tuple[int, Op]]:
        yield at, op
        match op:
            case Loop(counter, trips, body, True):
                for value in range(self._value(trips, counters)):
                    yield from self._visit(body, at + 1, counters | {counter: value})
            case When(conditions, body):
                static = all(self._static(side, counters) for compare in conditions for side in compare.sides)
                if not static or all(holds(c, counters.__getitem__, self._element) for c in conditions):
                    yield from self._visit(body, at + 1, counters)
            case Switch(selector, cases):
                selected = self._value(selector, counters) if self._static(selector, counters) else None
                for number, case in numbered(cases, at + 1):
                    if selected in (None, case.value):
                        yield from self._one(case, number, counters)
            case Loop() | Case() | Phase():
                yield from self._visit(op.body, at + 1, counters)

    def _static(self, expr: Expr, counters: dict[str, int]) -> bool:
        return is_static(expr, counters.keys() | self._tables.keys())

    def _value(self, expr: Expr, counters: dict[str, int]) -> int:
        return evaluate(expr, counters.__getitem__, self._element)

    def _element(self, array: str, index: int) -> int:
        return self._tables[array][index]
