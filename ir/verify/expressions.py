"""Expressions and comparisons, compiled once into functions that give their symbolic value in the current state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank, leaves
from schedc.ir.text_print import print_compare, print_expr
from schedc.ir.verify import scalars
from schedc.ir.verify.linear import Lin, Value, add, sub
from schedc.ir.verify.logic import AbortError, Condition

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine

Evaluate = Callable[[], Value]


def compile_expr(machine: Machine, expr: Expr) -> Evaluate:
    match expr:
        case Const(value):
            return _constant(value)
        case Counter(name):
            counters = machine.counters
            return lambda: counters[name]
        case Rank():
            return _constant(machine.rank)
        case Element(array, index):
            position = compile_expr(machine, index)
            return lambda: scalars.read(machine, array, position())
        case Binary(op, left, right):
            return _binary(machine, expr, op, compile_expr(machine, left), compile_expr(machine, right))


@cache
def _constant(value: int) -> Evaluate:
    return lambda: value


def _binary(machine: Machine, expr: Expr, op: str, left: Evaluate, right: Evaluate) -> Evaluate:
    atoms, logic = machine.atoms, machine.logic
    match op:
        case "+":

            def plus() -> Value:
                a, b = left(), right()
                return a + b if type(a) is int and type(b) is int else add(a, b)

            return plus
        case "-":
            return lambda: sub(left(), right())
        case "*":
            return lambda: atoms.mul(left(), right())
        case "//" | "%":
            apply = atoms.floordiv if op == "//" else atoms.mod
            done: dict[tuple[Value, int], Value] = {}

            def divide() -> Value:
                value, by = left(), right()
                if type(value) is int and type(by) is int and value >= 0 and by > 0:
                    return value // by if op == "//" else value % by
                if not isinstance(by, int) or by <= 0 or not logic.proves(value, machine.facts):
                    machine.refuse(
                        "bad-division",
                        f"{machine.place()} divides in `{print_expr(expr)}` a value that may be negative, "
                        "or by one that is not a positive constant",
                        "divide non-negative values by positive constants",
                        key=print_expr(expr),
                    )
                    return 0
                if (value, by) not in done:
                    done[value, by] = apply(value, by)
                return done[value, by]

            return divide
        case "^":

            def exclusive_or() -> Value:
                a, b = left(), right()
                if type(a) is int and type(b) is int and a >= 0 and b >= 0:
                    return a ^ b
                if any(isinstance(x, Lin) and any(atom in atoms.inductions for atom, _ in x.terms) for x in (a, b)):
                    raise AbortError
                machine.refuse(
                    "bad-xor",
                    f"{machine.place()} takes in `{print_expr(expr)}` the exclusive or of a value that is negative "
                    "or depends on scalars",
                    "apply ^ to rank and loop counters",
                    key=print_expr(expr),
                )
                return 0

            return exclusive_or
        case _:
            return lambda: logic.pick(op, left(), right(), machine.facts)


def compile_compare(machine: Machine, compare: Compare) -> Callable[[], bool | Condition]:
    """True, False, or the condition where neither follows from the facts."""
    left, right = compile_expr(machine, compare.left), compile_expr(machine, compare.right)
    logic, op = machine.logic, compare.op

    def test() -> bool | Condition:
        condition = logic.compare(op, left(), right())
        if isinstance(condition, bool):
            return condition
        decided = logic.decide(condition, machine.facts)
        if decided is None:
            if condition not in machine.context.conditions:
                machine.context.conditions[condition] = print_compare(compare)
            return condition
        return decided

    return test


def is_dynamic(expr: Expr, traced: frozenset[str]) -> bool:
    """Whether the kernel computes `expr` while it runs; `traced` counters belong to unrolled loops."""
    return any(not isinstance(leaf, Counter) or leaf.name not in traced for leaf in leaves(expr))
