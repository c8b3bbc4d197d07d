"""What a step is told of its rows: which are active, at which positions.

Rows that are tokens of one sequence follow each other: row t is at position[0] + t, and active rows come first.
"""

from __future__ import annotations

from schedc.ir.expr import Compare, Const, Element, Expr, add, as_expr, minimum, sub
from schedc.ir.program import Op, Scalars, SetScalar
from schedc.lower.graph import StepShape

COUNT = "count"
"""How many rows are active, where rows are tokens of one sequence: no more than the context has room for."""


def row_scalars(shape: StepShape, vocab: int) -> tuple[Scalars, ...]:
    """The kernel's inputs of the rows, and what it makes of them."""
    inputs = (
        Scalars("token", shape.rows, 0, vocab - 1, "input"),
        Scalars("position", shape.sequences, 0, shape.context - 1, "input"),
        Scalars("active", shape.rows, 0, 1, "input"),
    )
    return inputs if shape.rows_are == "sequences" else (*inputs, Scalars(COUNT, 1, 0, shape.rows, "local"))


def count_rows(shape: StepShape) -> tuple[Op, ...]:
    """Before anything is made of the count."""
    if shape.rows_are == "sequences":
        return ()
    active = add(*(Element("active", Const(row)) for row in range(shape.rows)))
    return (SetScalar(COUNT, Const(0), minimum(active, sub(shape.context, Element("position", Const(0))))),)


def position_of(shape: StepShape, row: Expr) -> Expr:
    """The position of a row, within the context."""
    if shape.rows_are == "sequences":
        return Element("position", row)
    return minimum(add(Element("position", Const(0)), row), shape.context - 1)


def is_active(row: Expr) -> Compare:
    return Compare(">", Element("active", row), as_expr(0))
