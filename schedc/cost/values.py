"""Expressions of a program as functions of loop counters, scalar arrays and the rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank

Value = Callable[[list[int], list[list[int]]], int]
"""Of the counters and the scalar arrays, on device 0."""

RankedValue = Callable[[list[int], list[list[int]], int], int]
"""The same, and of the rank."""

Scope = Mapping[str, int]
"""By the name of a counter, its place among the counters."""


def value_of(expr: Expr, scope: Scope, arrays: Mapping[str, int]) -> Value:
    return _function("c, s", _text(expr, scope, arrays, "(0)"))


def ranked_value_of(expr: Expr, scope: Scope, arrays: Mapping[str, int]) -> RankedValue:
    return _function("c, s, r", _text(expr, scope, arrays, "r"))


def condition_of(conditions: tuple[Compare, ...], scope: Scope, arrays: Mapping[str, int]) -> Value:
    """Whether all of them hold."""
    texts = (f"{_text(c.left, scope, arrays, '(0)')} {c.op} {_text(c.right, scope, arrays, '(0)')}" for c in conditions)
    return _function("c, s", " and ".join(texts) or "True")


def _text(expr: Expr, scope: Scope, arrays: Mapping[str, int], rank: str) -> str:
    match expr:
        case Const(value):
            return f"({value})"
        case Counter(name):
            return f"c[{scope[name]}]"
        case Rank():
            return rank
        case Element(array, index):
            return f"s[{arrays[array]}][{_text(index, scope, arrays, rank)}]"
        case Binary(op, left, right):
            sides = _text(left, scope, arrays, rank), _text(right, scope, arrays, rank)
            return f"{op}({sides[0]}, {sides[1]})" if op in ("min", "max") else f"({sides[0]} {op} {sides[1]})"


def _function(parameters: str, text: str) -> Callable[..., int]:
    """Python's own compiler is the fastest evaluator; `text` has only integers, operators and subscripts."""
    function: Callable[..., int] = eval(f"lambda {parameters}: {text}")
    return function
