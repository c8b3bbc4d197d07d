"""Integer expressions over loop counters and ranged scalars: addresses, slots, trip counts, guards.

Every expression can be printed, evaluated for given values, bounded by interval arithmetic
and emitted as Python. Division and remainder are only ever applied to non-negative values,
so floor and truncation agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Interval = tuple[int, int]
"""Inclusive lower and upper bound."""


@dataclass(frozen=True)
class Const:
    value: int


@dataclass(frozen=True)
class Counter:
    """The current value of the enclosing loop with this counter name."""

    name: str


@dataclass(frozen=True)
class Element:
    """`array[index]` of a scalar array in SMEM."""

    array: str
    index: Expr


@dataclass(frozen=True)
class Binary:
    """`left op right`; `//` and `%` want a non-negative left side and a positive constant on the right."""

    op: Literal["+", "-", "*", "//", "%", "min", "max"]
    left: Expr
    right: Expr


Expr = Const | Counter | Element | Binary


@dataclass(frozen=True)
class Compare:
    """One comparison of a guard."""

    op: Literal["<", "<=", "==", "!=", ">=", ">"]
    left: Expr
    right: Expr


def as_expr(value: Expr | int) -> Expr:
    return Const(value) if isinstance(value, int) else value


_FOLD: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


def _binary(op: str, left: Expr | int, right: Expr | int) -> Expr:
    a, b = as_expr(left), as_expr(right)
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(_FOLD[op](a.value, b.value))
    if op == "+" and a == Const(0):
        return b
    if op in "+-" and b == Const(0):
        return a
    if op == "*" and Const(0) in (a, b):
        return Const(0)
    if op == "*" and a == Const(1):
        return b
    if op in ("*", "//") and b == Const(1):
        return a
    if op == "%" and b == Const(1):
        return Const(0)
    return Binary(op, a, b)  # type: ignore[arg-type]


def add(*terms: Expr | int) -> Expr:
    total: Expr = Const(0)
    for term in terms:
        total = _binary("+", total, term)
    return total


def sub(left: Expr | int, right: Expr | int) -> Expr:
    return _binary("-", left, right)


def mul(left: Expr | int, right: Expr | int) -> Expr:
    return _binary("*", left, right)


def floordiv(left: Expr | int, right: Expr | int) -> Expr:
    return _binary("//", left, right)


def mod(left: Expr | int, right: Expr | int) -> Expr:
    return _binary("%", left, right)


def minimum(*terms: Expr | int) -> Expr:
    first, *rest = terms
    result = as_expr(first)
    for term in rest:
        result = _binary("min", result, term)
    return result


def maximum(*terms: Expr | int) -> Expr:
    first, *rest = terms
    result = as_expr(first)
    for term in rest:
        result = _binary("max", result, term)
    return result


def evaluate(expr: Expr, counter: Callable[[str], int], element: Callable[[str, int], int]) -> int:
    """The value of `expr`; `counter(name)` and `element(array, index)` supply the leaves."""
    match expr:
        case Const(value):
            return value
        case Counter(name):
            return counter(name)
        case Element(array, index):
            return element(array, evaluate(index, counter, element))
        case Binary(op, left, right):
            return _FOLD[op](evaluate(left, counter, element), evaluate(right, counter, element))


def holds(compare: Compare, counter: Callable[[str], int], element: Callable[[str, int], int]) -> bool:
    left, right = (evaluate(side, counter, element) for side in (compare.left, compare.right))
    return _COMPARE[compare.op](left, right)


def bounds(expr: Expr, counter: Callable[[str], Interval], element: Callable[[str, Interval], Interval]) -> Interval:
    """An interval that contains every value of `expr`, given intervals of its leaves."""
    match expr:
        case Const(value):
            return value, value
        case Counter(name):
            return counter(name)
        case Element(array, index):
            return element(array, bounds(index, counter, element))
        case Binary(op, left, right):
            (a, b), (c, d) = bounds(left, counter, element), bounds(right, counter, element)
            return _interval(op, a, b, c, d)


def _interval(op: str, a: int, b: int, c: int, d: int) -> Interval:
    match op:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "//":
            return a // d, b // c
        case "%":
            return (a % d, b % d) if c == d and a // d == b // d else (0, d - 1)
        case "*":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case _:
            return _FOLD[op](a, c), _FOLD[op](b, d)


def decide(
    compare: Compare, counter: Callable[[str], Interval], element: Callable[[str, Interval], Interval]
) -> bool | None:
    """Whether the comparison always holds (True), never holds (False), or depends (None)."""
    (a, b), (c, d) = bounds(compare.left, counter, element), bounds(compare.right, counter, element)
    match compare.op:
        case "<":
            return True if b < c else False if a >= d else None
        case "<=":
            return True if b <= c else False if a > d else None
        case ">":
            return True if a > d else False if b <= c else None
        case ">=":
            return True if a >= d else False if b < c else None
        case "==":
            return True if a == b == c == d else False if b < c or d < a else None
        case _:
            return True if b < c or d < a else False if a == b == c == d else None


def leaves(expr: Expr) -> Iterator[Counter | Element]:
    match expr:
        case Counter():
            yield expr
        case Element(_, index):
            yield expr
            yield from leaves(index)
        case Binary(_, left, right):
            yield from leaves(left)
            yield from leaves(right)
