"""After how many iterations the divisions and remainders of a loop repeat."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm

from schedc.ir.expr import Binary, Const, Counter, Element, Expr
from schedc.ir.program import (
    Await,
    Compute,
    Loop,
    Op,
    RemoteStart,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    walk,
)

_LONGEST_PERIOD = 64


def period_of(loop: Loop, skips: Callable[[Op], bool]) -> int:
    """The smallest number of iterations after which every `//` and `%` of the counter repeats; 0 if too many.

    Operations that are skipped do not count.
    """
    period = 1
    for op in walk(loop.body):
        if skips(op):
            continue
        for expr in _expressions(op):
            for part, by in _divisions(expr):
                coefficient = abs(_coefficient(part, loop.counter))
                if coefficient:
                    period = lcm(period, by // gcd(by, coefficient))
                    if period > _LONGEST_PERIOD:
                        return 0
    return period


def _expressions(op: Op) -> list[Expr]:
    match op:
        case Start(source, target, semaphore):
            return [source.offset, source.slot, target.offset, target.slot, semaphore.index]
        case RemoteStart(source, target, peer, sent, arrived):
            return [source.offset, source.slot, target.offset, target.slot, peer, sent.index, arrived.index]
        case Switch(selector):
            return [selector]
        case Wait(semaphore) | Signal(semaphore) | Await(semaphore):
            return [semaphore.index]
        case Compute():
            # The numbers that it computes with decide nothing: any value of their range will do.
            return [e for operand in op.operands for e in (operand.region.offset, operand.region.slot)]
        case SetScalar(_, index, value):
            return [index, value]
        case Loop(_, trips):
            return [trips]
        case When(conditions):
            return [side for compare in conditions for side in (compare.left, compare.right)]
        case _:
            return []


def _divisions(expr: Expr) -> list[tuple[Expr, int]]:
    match expr:
        case Binary(op, left, right):
            found = _divisions(left) + _divisions(right)
            if op in ("//", "%") and isinstance(right, Const) and right.value > 0:
                found.append((left, right.value))
            return found
        case Element(_, index):
            return _divisions(index)
        case _:
            return []


def _coefficient(expr: Expr, counter: str) -> int:
    """How much `expr` grows with the counter; 0 if it does not, 1 for what is not linear."""
    match expr:
        case Counter(name):
            return int(name == counter)
        case Binary("+", left, right):
            return _coefficient(left, counter) + _coefficient(right, counter)
        case Binary("-", left, right):
            return _coefficient(left, counter) - _coefficient(right, counter)
        case Binary("*", left, Const(by)) | Binary("*", Const(by), left):
            return _coefficient(left, counter) * by
        case Binary(_, left, right):
            return int(bool(_coefficient(left, counter) or _coefficient(right, counter)))
        case _:
            return 0
