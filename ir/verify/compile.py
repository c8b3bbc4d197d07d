"""Operations compiled once into functions that execute them on a symbolic machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schedc.ir.program import (
    BLOCKS,
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
    walk,
)
from schedc.ir.verify import induction, ranged, scalars
from schedc.ir.verify.context import UndecidedError
from schedc.ir.verify.expressions import compile_compare, compile_expr
from schedc.ir.verify.linear import Lin, Value
from schedc.ir.verify.logic import AbortError, Condition
from schedc.ir.verify.period import period_of
from schedc.ir.verify.regions import Resolve, compile_region
from schedc.ir.verify.state import Access, Element

if TYPE_CHECKING:
    from schedc.ir.verify.machine import Machine

Run = Callable[[], None]


@dataclass
class Node:
    """An operation, its index in the order of `program.walk`, and what executes it."""

    index: int
    op: Op
    body: list[Node] = field(default_factory=list)
    run: Run = lambda: None
    counter: str = ""
    period: int = 0
    traced: bool = False
    """A loop that the kernel unrolls."""
    computes: bool = False
    """A loop in which computations set scalars."""
    communicates: bool = False
    """Whether other devices have to do with it: then it is executed with all its conditions decided."""

    def release(self) -> None:
        self.run = _nothing
        for node in self.body:
            node.release()


def _nothing() -> None:
    pass


class Compiler:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._next_index = 0

    def block(self, ops: tuple[Op, ...], traced: frozenset[str], looped: bool = False) -> list[Node]:
        """`traced` holds the counters of unrolled loops, whose values the kernel knows when it is built.

        `looped` says whether the operations stand in a loop.
        """
        nodes, machine = [], self._machine
        for op in ops:
            node = Node(self._next_index, op, communicates=machine.context.communicates(op))
            self._next_index += 1
            inner = traced
            if isinstance(op, Loop):
                node.counter, node.traced = op.counter, op.unroll
                node.period = period_of(op, machine.skips) if machine.inducts or not node.communicates else 0
                node.computes = any(isinstance(inner, Compute) and inner.sets for inner in walk(op.body))
                inner = traced | {op.counter} if op.unroll else traced
            if isinstance(op, BLOCKS):
                node.body = self.block(op.body, inner, looped or isinstance(op, Loop))
            node.run = self._runner(node, op, traced) if looped else self._once(node, op, traced)
            nodes.append(node)
        return nodes

    def _once(self, node: Node, op: Op, traced: frozenset[str]) -> Run:
        """What runs once is compiled when it runs, and forgotten: text without loops may be long."""
        return lambda: self._runner(node, op, traced)()

    def _runner(self, node: Node, op: Op, traced: frozenset[str]) -> Run:
        machine = self._machine
        if machine.skips(op):
            return lambda: None
        match op:
            case Start():
                return self._start(op, node.index, traced)
            case RemoteStart():
                return self._remote_start(op, node.index, traced)
            case Wait(ref, rows):
                return self._on_semaphore(ref, lambda element: machine.wait(element, rows))
            case Signal(ref, amount, peer):
                if peer is None:
                    return self._on_semaphore(ref, lambda element: machine.signal(element, amount, None))
                to = self._peer(compile_expr(machine, peer))
                return self._on_semaphore(ref, lambda element: _with(to(), machine.signal, element, amount))
            case Await(ref, amount):
                return self._on_semaphore(ref, lambda element: machine.take(element, amount))
            case Barrier():
                return machine.barrier
            case Compute():
                return self._compute(op, node.index, traced)
            case SetScalar(array, index, value):
                where, what = compile_expr(machine, index), compile_expr(machine, value)
                return lambda: scalars.write(machine, array, where(), what())
            case Loop():
                return self._loop(node, op)
            case When():
                return self._when(node, op)
            case Switch():
                return self._switch(node, op)
            case Case() | Phase():
                return lambda: machine.run(node.body)

    def _start(self, op: Start, index: int, traced: frozenset[str]) -> Run:
        machine = self._machine
        source = compile_region(machine, op.source, True, traced)
        target = compile_region(machine, op.target, True, traced)

        def begin(element: Element) -> None:
            rows, there = source(), target()
            if rows is not None and there is not None:
                machine.start(index, rows, there, element)

        return self._on_semaphore(op.semaphore, begin)

    def _remote_start(self, op: RemoteStart, index: int, traced: frozenset[str]) -> Run:
        machine = self._machine
        source = compile_region(machine, op.source, True, traced)
        target = compile_region(machine, op.target, True, traced)
        peer = self._peer(compile_expr(machine, op.peer))
        found: list[Element] = []
        sent, arrived = (self._on_semaphore(ref, found.append) for ref in (op.sent, op.arrived))

        def run() -> None:
            found.clear()
            to, rows, there = peer(), source(), target()
            sent()
            arrived()
            if to is not None and rows is not None and there is not None and len(found) == 2:
                machine.remote_start(index, rows, there, to, found[0], found[1])

        return run

    def _peer(self, value: Callable[[], Value]) -> Callable[[], int | None]:
        """The number of another device, or None after refusing it."""
        machine = self._machine
        devices = machine.context.devices

        def peer() -> int | None:
            to = value()
            if type(to) is int and 0 <= to < devices and to != machine.rank:
                return to
            machine.refuse(
                "bad-peer",
                f"{machine.place()} goes to device {machine.atoms.text(to)}"
                + (", itself" if to == machine.rank else f" of devices 0..{devices - 1}"),
                "compute the peer from rank and loop counters so that it is another device",
            )
            return None

        return peer

    def _on_semaphore(self, ref: SemaphoreRef, then: Callable[[Element], None]) -> Run:
        machine = self._machine
        index, name, count = compile_expr(machine, ref.index), ref.name, machine.context.counts[ref.name]

        def run() -> None:
            which = index()
            if type(which) is int and 0 <= which < count:
                then((name, which))
            elif type(which) is int:
                machine.refuse(
                    "out-of-range",
                    f"{machine.place()} uses {name}[{which}], which has elements 0..{count - 1}",
                    f"keep the index of {name} within 0..{count - 1}",
                    key=name,
                )
            else:
                machine.refuse(
                    "unknown-semaphore",
                    f"{machine.place()} uses {name}[{machine.atoms.text(which)}], an element that depends on scalars",
                    "index semaphores by loop counters",
                    key=name,
                )

        return run

    def _compute(self, op: Compute, index: int, traced: frozenset[str]) -> Run:
        machine = self._machine
        arguments = [compile_expr(machine, value) for _, value in op.scalars]
        operands: list[tuple[str, Resolve]] = [
            (operand.access, compile_region(machine, operand.region, False, traced)) for operand in op.operands
        ]

        def run() -> None:
            for argument in arguments:
                argument()
            accesses: list[tuple[str, Access]] = []
            for access, resolve in operands:
                if (rows := resolve()) is not None:
                    accesses.append((access, rows))
            machine.compute(index, accesses)
            for _, array in op.sets:
                scalars.compute(machine, array)

        return run

    def _loop(self, node: Node, op: Loop) -> Run:
        machine = self._machine
        trips = compile_expr(machine, op.trips)

        def run() -> None:
            count = trips()
            if node.communicates:
                self._decided(node, count)
            elif isinstance(count, Lin):
                if any(atom in machine.atoms.inductions for atom, _ in count.terms):
                    raise AbortError
                ranged.run(machine, node, count)
            else:
                induction.run_static(machine, node, count)

        return run

    def _decided(self, node: Node, trips: Value) -> None:
        """A loop in which devices communicate: every world knows how often it runs."""
        machine = self._machine
        if type(trips) is int:
            induction.run_static(machine, node, trips)
            return
        k = 0
        while self._holds(machine.logic.compare(">", trips, k), node, f"{node.counter} runs to {k}"):
            machine.counters[node.counter] = k
            machine.run(node.body)
            k += 1
        machine.counters.pop(node.counter, None)

    def _holds(self, condition: Condition | bool, node: Node, text: str = "") -> bool:
        machine = self._machine
        if isinstance(condition, Condition):
            decided = machine.logic.decide(condition, machine.facts)
            if decided is None:
                if machine.inductions:
                    raise AbortError
                machine.context.conditions.setdefault(condition, text)
                raise UndecidedError(condition, machine.place_of(node.index, machine.now()).text)
            return decided
        return condition

    def _when(self, node: Node, op: When) -> Run:
        machine = self._machine
        tests = [compile_compare(machine, compare) for compare in op.conditions]

        def run() -> None:
            outside = machine.facts
            try:
                for test in tests:
                    result = test()
                    if node.communicates:
                        result = self._holds(result, node)
                    if result is False:
                        return
                    if isinstance(result, Condition):
                        machine.facts = (*machine.facts, result)
                machine.run(node.body)
            finally:
                machine.facts = outside

        return run

    def _switch(self, node: Node, op: Switch) -> Run:
        machine = self._machine
        selector = compile_expr(machine, op.selector)
        cases = {case.value: inner for case, inner in zip(op.body, node.body, strict=True)}

        def run() -> None:
            value, outside = selector(), machine.facts
            if not machine.covers(value, set(cases)):
                return
            for number, inner in cases.items():
                condition = machine.logic.compare("==", value, number)
                if isinstance(condition, Condition):
                    text = f"{machine.atoms.text(value)} == {number}"
                    decided = machine.logic.decide(condition, outside)
                    if node.communicates:
                        decided = self._holds(condition, node, text)
                    if decided is None:
                        machine.facts = (*outside, condition)
                        machine.context.conditions.setdefault(condition, text)
                    condition = decided is not False
                if condition:
                    machine.run([inner])
                machine.facts = outside

        return run


def _with(peer: int | None, signal: Callable[[Element, int, int | None], None], element: Element, amount: int) -> None:
    if peer is not None:
        signal(element, amount, peer)
