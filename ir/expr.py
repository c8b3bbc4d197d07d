"""Integer expressions over loop counters and ranged scalars: addresses, slots, trip counts, guards.

Every expression can be printed, evaluated for given values and emitted as Python. Division and
remainder are only ever applied to non-negative values, so floor and truncation agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Const:
    value: int


@dataclass(frozen=True)
class Counter:
    """The current value of the enclosing loop with this counter name."""

    name: str


@dataclass(frozen=True)
class Rank:
    """The number of the device that runs the program, from 0."""


@dataclass(frozen=True)
class Element:
    """`array[index]` of a scalar array in SMEM."""

    array: str
    index: Expr


@dataclass(frozen=True)
class Binary:
    """`left op right`; `//` and `%` want a non-negative left side and a positive constant on the right.

    `^` (exclusive or) wants non-negative values that the proof knows, such as those of `rank` and counters.
    """

    op: Literal["+", "-", "*", "//", "%", "^", "min", "max"]
    left: Expr
    right: Expr


Expr = Const | Counter | Rank | Element | Binary


@dataclass(frozen=True)
class Compare:
    """One comparison of a guard."""

    op: Literal["<", "<=", "==", "!=", ">=", ">"]
    left: Expr
    right: Expr

    @property
    def sides(self) -> tuple[Expr, Expr]:
        return self.left, self.right


def as_expr(value: Expr | int) -> Expr:
    return Const(value) if isinstance(value, int) else value


_FOLD: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a ^ b,
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


def xor(left: Expr | int, right: Expr | int) -> Expr:
    return _binary("^", left, right)


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


def evaluate(expr: Expr, counter: Callable[[str], int], element: Callable[[str, int], int], rank: int = 0) -> int:
    """The value of `expr` on device `rank`; `counter(name)` and `element(array, index)` supply the leaves."""
    match expr:
        case Const(value):
            return value
        case Counter(name):
            return counter(name)
        case Rank():
            return rank
        case Element(array, index):
            return element(array, evaluate(index, counter, element, rank))
        case Binary(op, left, right):
            return _FOLD[op](evaluate(left, counter, element, rank), evaluate(right, counter, element, rank))


def holds(compare: Compare, counter: Callable[[str], int], element: Callable[[str, int], int], rank: int = 0) -> bool:
    left, right = (evaluate(side, counter, element, rank) for side in compare.sides)
    return _COMPARE[compare.op](left, right)


def leaves(expr: Expr) -> Iterator[Counter | Rank | Element]:
    match expr:
        case Counter() | Rank():
            yield expr
        case Element(_, index):
            yield expr
            yield from leaves(index)
        case Binary(_, left, right):
            yield from leaves(left)
            yield from leaves(right)


def elements(expr: Expr) -> Iterator[Element]:
    """The elements of scalar arrays that it reads, outermost first."""
    return (leaf for leaf in leaves(expr) if isinstance(leaf, Element))
