"""Loop counters and scalars of one device, and expressions over them as functions of no arguments."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from schedc.ir.execute.fault import refuse
from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
from schedc.ir.program import Program, Scalars

Value = Callable[[], int]


class _Counters(dict[str, int]):
    def __missing__(self, name: str) -> int:
        refuse("undeclared", f"no loop counts {name}")


class Values:
    def __init__(self, program: Program, inputs: Mapping[str, Sequence[int]], rank: int, draw: int = 0) -> None:
        self.counters: dict[str, int] = _Counters()
        self._random = random.Random(f"{draw} {rank}")
        self._rank = rank
        self._declared = {scalars.name: scalars for scalars in program.scalars}
        self._elements = {scalars.name: _initial(scalars, inputs) for scalars in program.scalars}

    def compile(self, expr: Expr) -> Value:
        """A function that gives the value of `expr` now, or raises IllegalError."""
        value = self._compile(expr)
        return cache(value) if isinstance(expr, Binary) and is_fixed(expr) else value

    def holds(self, compare: Compare) -> Callable[[], bool]:
        left, right, test = self.compile(compare.left), self.compile(compare.right), _COMPARE[compare.op]
        return lambda: test(left(), right())

    def assign(self, array: str, index: int, value: int) -> None:
        declared = self._of(array)
        if declared.role == "table":
            refuse("table-written", array)
        _check(declared, index)
        if not declared.low <= value <= declared.high:
            text = f"{array}[{index}] becomes {value}, outside {declared.low}..{declared.high}"
            refuse("out-of-range", text)
        self._elements[array][index] = value

    def compute(self, array: str) -> None:
        """What a computation sets is not known: every element becomes some value of the range, often an extreme."""
        declared = self._of(array)
        low, high = declared.low, declared.high
        if declared.role != "local":
            refuse("table-written", array)
        for index in range(declared.length):
            drawn = self._random.choice((low, high, self._random.randint(low, high), self._random.randint(low, high)))
            self._elements[array][index] = drawn

    def _compile(self, expr: Expr) -> Value:
        match expr:
            case Const(value):
                return lambda: value
            case Rank():
                rank = self._rank
                return lambda: rank
            case Counter(name):
                counters = self.counters
                return lambda: counters[name]
            case Element(array, index):
                return self._element(array, self._compile(index))
            case Binary(op, left, right):
                return _BINARY[op](self._compile(left), self._compile(right))

    def _of(self, array: str) -> Scalars:
        declared = self._declared.get(array)
        return declared if declared is not None else refuse("undeclared", f"there are no scalars {array}")

    def _element(self, array: str, index: Value) -> Value:
        if array not in self._declared:
            return lambda: refuse("undeclared", f"there are no scalars {array}")
        declared, elements = self._declared[array], self._elements[array]
        unset = declared.low if declared.role == "input" else None

        def element() -> int:
            i = index()
            _check(declared, i)
            value = elements.get(i, unset)
            return refuse("never-written", f"{array}[{i}] is not set") if value is None else value

        return element


def is_fixed(expr: Expr) -> bool:
    """Whether it has the same value everywhere in the program."""
    if isinstance(expr, Binary):
        return is_fixed(expr.left) and is_fixed(expr.right)
    return isinstance(expr, (Const, Rank))


def _initial(scalars: Scalars, inputs: Mapping[str, Sequence[int]]) -> dict[int, int]:
    if scalars.role == "table":
        return dict(enumerate(scalars.values))
    if scalars.name not in inputs:
        different = range(scalars.low, min(scalars.low + scalars.length, scalars.high + 1))
        return dict(enumerate(different)) if scalars.distinct else {}
    given = inputs[scalars.name]
    if len(given) != scalars.length:
        raise ValueError(f"{scalars.name} has {scalars.length} elements, not {len(given)}")
    if wrong := [value for value in given if not scalars.low <= value <= scalars.high]:
        raise ValueError(f"{scalars.name} is within {scalars.low}..{scalars.high}, not {wrong[0]}")
    return dict(enumerate(given))


def _check(scalars: Scalars, index: int) -> None:
    if not 0 <= index < scalars.length:
        refuse("out-of-range", f"element {index} of {scalars.name}[{scalars.length}]")


def _divided(left: Value, right: Value, op: str, fold: Callable[[int, int], int]) -> Value:
    def value() -> int:
        a, b = left(), right()
        return fold(a, b) if a >= 0 and b > 0 else refuse("out-of-range", f"{a} {op} {b}")

    return value


def _exclusive_or(left: Value, right: Value) -> Value:
    def value() -> int:
        a, b = left(), right()
        return a ^ b if a >= 0 and b >= 0 else refuse("out-of-range", f"{a} ^ {b}")

    return value


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda left, right: lambda: left() + right(),
    "-": lambda left, right: lambda: left() - right(),
    "*": lambda left, right: lambda: left() * right(),
    "//": lambda left, right: _divided(left, right, "//", operator.floordiv),
    "%": lambda left, right: _divided(left, right, "%", operator.mod),
    "^": _exclusive_or,
    "min": lambda left, right: lambda: min(left(), right()),
    "max": lambda left, right: lambda: max(left(), right()),
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
