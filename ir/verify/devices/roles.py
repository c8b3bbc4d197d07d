"""Devices that cannot be told apart: what a device does depends on its rank through a few values alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from schedc.ir.expr import Binary, Counter, Element, Expr, Rank, evaluate, leaves
from schedc.ir.program import (
    Await,
    Compute,
    Loop,
    Op,
    Program,
    Region,
    RemoteStart,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    walk,
)
from schedc.ir.verify.machine import Peers


class Roles:
    """Two devices of one role execute the same operations on the same rows and semaphores of their own."""

    def __init__(self, program: Program) -> None:
        self._tables = {s.name: s.values for s in program.scalars if s.role == "table"}
        found = {part: None for op in walk(program.body) for expr in _own(op) for part in self._parts(expr)}
        self._values = tuple(found)

    def role(self, rank: int, peers: Peers) -> Hashable:
        values = tuple(self._value(expr, rank) for expr in self._values)
        arriving = tuple(
            (events, tuple((t.op, t.target.storage, t.target.base, t.semaphore) for t in transfers))
            for events, transfers in sorted(peers.arriving.items())
        )
        read = tuple(
            (events, tuple((t.op, t.counters) for t in transfers)) for events, transfers in sorted(peers.read.items())
        )
        return values, arriving, read

    def _value(self, expr: Expr, rank: int) -> Hashable:
        try:
            return evaluate(expr, lambda name: 0, lambda array, i: self._tables[array][i], rank)
        except (ArithmeticError, IndexError):
            return ("none", rank)

    def _parts(self, expr: Expr) -> Iterator[Expr]:
        """The largest parts that depend on the rank and on nothing that changes, or the rank itself."""
        found = list(leaves(expr))
        if not any(isinstance(leaf, Rank) for leaf in found):
            return
        if all(isinstance(leaf, Rank) or self._is_constant(leaf) for leaf in found):
            yield expr
        elif isinstance(expr, Binary) and expr.op in ("+", "-", "*"):
            yield from self._parts(expr.left)
            yield from self._parts(expr.right)
        else:
            yield Rank()

    def _is_constant(self, leaf: Counter | Rank | Element) -> bool:
        return isinstance(leaf, Element) and leaf.array in self._tables


def _own(op: Op) -> list[Expr]:
    """The expressions of an operation, less those that say which peer it goes to, or what becomes of it there."""
    match op:
        case Start(source, target, semaphore):
            return [*_region(source), *_region(target), semaphore.index]
        case RemoteStart(source, _, _, sent, _):
            return [*_region(source), sent.index]
        case Wait(semaphore) | Await(semaphore) | Signal(semaphore):
            return [semaphore.index]
        case Compute(_, operands, scalars):
            return [e for x in operands for e in _region(x.region)] + [value for _, value in scalars]
        case SetScalar(_, index, value):
            return [index, value]
        case Loop(_, trips):
            return [trips]
        case When(conditions):
            return [side for compare in conditions for side in (compare.left, compare.right)]
        case Switch(selector):
            return [selector]
        case _:
            return []


def _region(region: Region) -> list[Expr]:
    return [region.offset, region.slot]
