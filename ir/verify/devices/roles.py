"""What a device does depends on its rank through a few values alone: devices that agree in them are proven together.

Of some values it depends what the device executes: those in conditions, trip counts, scalars and indices of
semaphores, and when it hears what from its peers. Others only say which rows are accessed.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Hashable, Iterable, Iterator

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
from schedc.ir.verify.peers import Peers
from schedc.ir.verify.state import Transfer


class Roles:
    def __init__(self, program: Program) -> None:
        self._tables = {s.name: s.values for s in program.scalars if s.role == "table"}
        ops = list(walk(program.body))
        self._control = tuple(dict.fromkeys(part for op in ops for expr in control(op) for part in self._parts(expr)))
        self._rows = tuple(dict.fromkeys(part for op in ops for expr in addresses(op) for part in self._parts(expr)))

    def control(self, rank: int) -> Hashable:
        """Devices with the same execute the same operations, on the same of their semaphores."""
        return tuple(self._value(expr, rank) for expr in self._control)

    def course(self, rank: int, peers: Peers) -> Hashable:
        """Devices with the same execute the same operations, and hear of the same transfers, on other rows."""
        return (
            self.control(rank),
            _schedule(peers, lambda t: (t.op, t.counters, t.target.storage, t.target.rows, t.semaphore)),
        )

    def rows(self, rank: int, peers: Peers) -> Hashable:
        """Devices with the same do it on the same rows."""
        return tuple(self._value(expr, rank) for expr in self._rows), _schedule(peers, lambda t: t.target.base)

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

    def _is_constant(self, leaf: object) -> bool:
        return isinstance(leaf, Element) and leaf.array in self._tables


def _schedule(peers: Peers, of: Callable[[Transfer], Hashable]) -> Hashable:
    """What arrives and what has been read, by number of events, in no order among what comes at once."""
    return tuple(
        tuple((events, _counted(map(of, found))) for events, found in sorted(schedule.items()))
        for schedule in (peers.arriving, peers.read)
    )


def _counted(found: Iterable[Hashable]) -> Hashable:
    """What is there and how often, in no order."""
    listed = list(found)
    return (listed[0], 1) if len(listed) == 1 else frozenset(Counts(listed).items())


def leaves_of(exprs: Iterable[Expr]) -> list[Counter | Rank | Element]:
    return [leaf for expr in exprs for leaf in leaves(expr)]


def depends_on_rank(exprs: Iterable[Expr]) -> bool:
    return any(isinstance(leaf, Rank) for leaf in leaves_of(exprs))


def control(op: Op) -> list[Expr]:
    """The expressions that decide what is executed next, and which semaphore of this device counts it."""
    match op:
        case Start(_, _, semaphore) | Wait(semaphore) | Await(semaphore) | Signal(semaphore):
            return [semaphore.index]
        case RemoteStart(_, _, _, sent, _):
            return [sent.index]
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


def regions(op: Op) -> list[Region]:
    """The regions of an operation on the device that executes it."""
    match op:
        case Start(source, target):
            return [source, target]
        case RemoteStart(source):
            return [source]
        case Compute(_, operands):
            return [operand.region for operand in operands]
        case _:
            return []


def addresses(op: Op) -> list[Expr]:
    """The expressions that say which rows an operation is about, and with which numbers it computes."""
    found = [expr for region in regions(op) for expr in (region.offset, region.slot)]
    return found + [value for _, value in op.scalars] if isinstance(op, Compute) else found
