"""Values that are known without running the program."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.ir.expr import Const, Counter, Expr, evaluate, leaves


def known(expr: Expr, counters: Mapping[str, int]) -> int | None:
    """The value, if it depends on known counters alone."""
    if isinstance(expr, Const):
        return expr.value
    if all(isinstance(leaf, Counter) and leaf.name in counters for leaf in leaves(expr)):
        return evaluate(expr, counters.__getitem__, lambda array, index: 0)
    return None
