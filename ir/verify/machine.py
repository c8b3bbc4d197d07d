"""The symbolic machine: runs a program in order with concrete counters where it can and symbolic scalars."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count

from schedc.ir.program import (
    Await,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Wait,
    When,
    walk,
)
from schedc.ir.text_print import operation_lines, print_op
from schedc.ir.verify import hazards, induction, ranged, scalars, waits
from schedc.ir.verify.contents import Contents
from schedc.ir.verify.expressions import compile_compare, compile_expr
from schedc.ir.verify.linear import Atoms, Lin, Value, sub
from schedc.ir.verify.logic import AbortError, Condition, Facts, Logic
from schedc.ir.verify.period import period_of
from schedc.ir.verify.regions import Resolve, compile_region
from schedc.ir.verify.state import Access, Counters, Element, State, Transfer
from schedc.ir.verify.verdict import Place, Refusal, Statistics

_MOST_REFUSALS = 20


@dataclass
class Node:
    """An operation, its index in the order of `program.walk`, and what executes it."""

    index: int
    op: Op
    body: list[Node] = field(default_factory=list)
    run: Callable[[], None] = lambda: None
    counter: str = ""
    period: int = 0
    traced: bool = False
    """A loop that the kernel unrolls."""


class EnoughError(Exception):
    """As many refusals as anyone will read."""


class Machine:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.arrays = {array.name: array for array in program.arrays}
        self.scalars = {declared.name: declared for declared in program.scalars}
        self.counts = {semaphore.name: semaphore.count for semaphore in program.semaphores}
        self.atoms = Atoms()
        self.logic = Logic(self.atoms)
        self.counters: dict[str, Value] = {}
        self.facts: Facts = ()
        self.conditions: dict[Condition, str] = {}
        """The text of conditions that were left open."""
        self.overlaps: dict[tuple[Value, int, int, Facts, Facts], bool] = {}
        """Of two accesses at a distance, with their rows, the facts and a guard: whether they may share a row."""
        self.resolved: dict[Hashable, Access] = {}
        """The rows of a region, by its number, offset and slot, and by the facts if those depend on scalars."""
        self.region_numbers = count()
        self.refusals: dict[Hashable, Refusal] = {}
        self.inductions = 0
        self.last_start: dict[Element, tuple[int, Counters, Facts]] = {}
        self.examined = self.transfers = self.skipped = self.peak_transfers = self.peak_rows = 0
        self._version = 0
        self._ops = list(walk(program.body))
        self._lines = operation_lines(program)
        self._current = 0
        self._next_index = 0
        read_outputs = {
            op.source.storage
            for op in self._ops
            if isinstance(op, Start) and op.source.storage in self.arrays
            and self.arrays[op.source.storage].role == "output"
        }  # fmt: skip
        spaces = {b.name if b.address is None else f"pool {b.pool}" for b in program.buffers} | read_outputs
        self.state = State(self.logic.reach, contents={space: Contents() for space in sorted(spaces)})
        self._body = self._compile(program.body, frozenset())

    def verify(self) -> Statistics:
        try:
            self.run(self._body)
            waits.check_end(self)
        except EnoughError:
            pass
        return Statistics(self.examined, self.transfers, self.peak_transfers, self.peak_rows, self.skipped)

    def run(self, nodes: list[Node]) -> None:
        for node in nodes:
            self._current = node.index
            self.examined += 1
            node.run()

    # What the rules ask.

    def next_version(self) -> int:
        self._version += 1
        return self._version

    def with_facts(self, guard: Facts) -> Facts:
        if not guard:
            return self.facts
        return self.facts + tuple(condition for condition in guard if condition not in self.facts)

    def is_read_only(self, storage: str) -> bool:
        return storage in self.arrays and self.arrays[storage].role in ("weight", "input")

    def index(self) -> int:
        return self._current

    def line(self) -> int:
        return self._lines[self._current]

    def now(self) -> Counters:
        return tuple(self.counters.items())

    # What refusals say.

    def place(self) -> Place:
        return self.place_of(self._current, self.now())

    def place_of(self, index: int, counters: Counters) -> Place:
        known = tuple((name, value if type(value) is int else self.atoms.text(value)) for name, value in counters)
        return Place(self._lines[index], print_op(self._ops[index]).removesuffix(" {"), known)

    def any_start(self, semaphore: str) -> Place | None:
        """Some operation that adds to the semaphore."""
        return self._any(semaphore, (Start, Signal))

    def any_wait(self, semaphore: str) -> Place | None:
        return self._any(semaphore, (Wait, Await))

    def _any(self, semaphore: str, kinds: tuple[type, ...]) -> Place | None:
        for index, op in enumerate(self._ops):
            if isinstance(op, kinds) and getattr(op, "semaphore").name == semaphore:  # noqa: B009
                return self.place_of(index, ())
        return None

    def neighbour(self) -> Place | None:
        """The next compute or start in the text after the current operation, else the one before it."""
        after = range(self._current + 1, len(self._ops))
        before = range(self._current - 1, -1, -1)
        found = (i for i in (*after, *before) if isinstance(self._ops[i], (Compute, Start)))
        return next((self.place_of(i, ()) for i in found), None)

    def target_of(self, place: Place | None) -> str:
        if place is None:
            return ""
        op = self._ops[self._lines.index(place.line)]
        return op.target.storage if isinstance(op, Start) else ""

    def semaphore_text(self, element: Element) -> str:
        name, index = element
        return f"{name}[{index}]" if self.counts[name] > 1 else name

    def guard_text(self, guard: Facts) -> str:
        return " and ".join(self._condition_text(condition) for condition in guard) or "always"

    def _condition_text(self, condition: Condition) -> str:
        if condition in self.conditions:
            return self.conditions[condition]
        negated = self.logic.negation(condition)
        if isinstance(negated, Condition) and negated in self.conditions:
            return f"not ({self.conditions[negated]})"
        return f"{self.atoms.text(condition.value)} {condition.kind} 0"

    def distance(self, counters: Counters) -> str:
        """How many iterations ago, in words."""
        parts = []
        for name, then in counters:
            steps = sub(self.counters[name], then) if name in self.counters else 0
            if type(steps) is int and steps:
                parts.append(f"{abs(steps)} iteration{'s' * (abs(steps) > 1)} of {name} {'ago' if steps > 0 else 'on'}")
        return f", started {', '.join(parts)}" if parts else ""

    def refuse(
        self,
        rule: str,
        what: str,
        repair: str,
        other: Place | None = None,
        *,
        storage: str = "",
        key: Hashable = None,
        at: Place | None = None,
    ) -> None:
        """Record the first refusal of its kind and place. Raises `AbortError` within an induction."""
        place = at if at is not None else self.place()
        identity = (rule, place.line, other.line if other else None, key)
        if identity in self.refusals:
            return
        if self.inductions:
            raise AbortError
        self.refusals[identity] = Refusal(rule, what, repair, place, other, storage)
        if len(self.refusals) >= _MOST_REFUSALS:
            raise EnoughError

    # Compiling operations into functions.

    def _compile(self, ops: tuple[Op, ...], traced: frozenset[str]) -> list[Node]:
        """`traced` holds the counters of unrolled loops, whose values the kernel knows when it is built."""
        nodes = []
        for op in ops:
            node = Node(self._next_index, op)
            self._next_index += 1
            if isinstance(op, Loop):
                node.counter, node.period, node.traced = op.counter, period_of(op), op.unroll
                inner = traced | {op.counter} if op.unroll else traced
                node.body = self._compile(op.body, inner)
            elif isinstance(op, (When, Phase)):
                node.body = self._compile(op.body, traced)
            node.run = self._runner(node, op, traced)
            nodes.append(node)
        return nodes

    def _runner(self, node: Node, op: Op, traced: frozenset[str]) -> Callable[[], None]:
        match op:
            case Start():
                return self._start(op, node.index, traced)
            case Wait(ref, rows):
                return self._on_semaphore(ref, lambda element: waits.wait(self, element, rows))
            case Signal(ref, amount):
                return self._on_semaphore(ref, lambda element: waits.signal(self, element, amount))
            case Await(ref, amount):
                return self._on_semaphore(ref, lambda element: waits.take(self, element, amount))
            case Compute():
                return self._compute(op, node.index, traced)
            case SetScalar(array, index, value):
                where, what = compile_expr(self, index), compile_expr(self, value)
                return lambda: scalars.write(self, array, where(), what())
            case Loop():
                return self._loop(node, op)
            case When():
                return self._when(node, op)
            case Phase():
                return lambda: self.run(node.body)

    def _start(self, op: Start, index: int, traced: frozenset[str]) -> Callable[[], None]:
        resolve_source = compile_region(self, op.source, True, traced)
        resolve_target = compile_region(self, op.target, True, traced)

        def begin(element: Element) -> None:
            source, target = resolve_source(), resolve_target()
            if source is None or target is None:
                return
            hazards.check_read(self, source)
            hazards.check_write(self, target)
            hazards.check_own_overlap(self, source, target)
            state = self.state
            state.transfers.append(Transfer(index, self.now(), source, target, element, self.facts))
            self.last_start[element] = (index, self.now(), self.facts)
            self.transfers += 1
            self.peak_transfers = max(self.peak_transfers, len(state.transfers))
            self.peak_rows = max(self.peak_rows, sum([transfer.source.rows for transfer in state.transfers]))

        return self._on_semaphore(op.semaphore, begin)

    def _on_semaphore(self, ref: SemaphoreRef, then: Callable[[Element], None]) -> Callable[[], None]:
        index, name, count = compile_expr(self, ref.index), ref.name, self.counts[ref.name]

        def run() -> None:
            which = index()
            if type(which) is int and 0 <= which < count:
                then((name, which))
            elif type(which) is int:
                self.refuse(
                    "out-of-range",
                    f"{self.place()} uses {name}[{which}], which has elements 0..{count - 1}",
                    f"keep the index of {name} within 0..{count - 1}",
                    key=name,
                )
            else:
                self.refuse(
                    "unknown-semaphore",
                    f"{self.place()} uses {name}[{self.atoms.text(which)}], an element that depends on scalars",
                    "index semaphores by loop counters",
                    key=name,
                )

        return run

    def _compute(self, op: Compute, index: int, traced: frozenset[str]) -> Callable[[], None]:
        arguments = [compile_expr(self, value) for _, value in op.scalars]
        operands: list[tuple[str, str, Resolve]] = [
            (operand.name, operand.access, compile_region(self, operand.region, False, traced))
            for operand in op.operands
        ]

        def run() -> None:
            for argument in arguments:
                argument()
            writes = []
            reads = []
            for _, access, resolve in operands:
                rows = resolve()
                if rows is None:
                    continue
                if access != "write":
                    hazards.check_read(self, rows)
                    reads.append(rows)
                if access != "read":
                    writes.append(rows)
            for rows in writes:
                hazards.check_write(self, rows)
            hazards.check_operands(self, reads, writes)
            for rows in writes:
                hazards.written(self, rows, self.facts, index)

        return run

    def _loop(self, node: Node, op: Loop) -> Callable[[], None]:
        trips = compile_expr(self, op.trips)

        def run() -> None:
            count = trips()
            if isinstance(count, Lin):
                if any(atom in self.atoms.inductions for atom, _ in count.terms):
                    raise AbortError
                ranged.run(self, node, count)
            else:
                induction.run_static(self, node, count)

        return run

    def _when(self, node: Node, op: When) -> Callable[[], None]:
        tests = [compile_compare(self, compare) for compare in op.conditions]

        def run() -> None:
            outside = self.facts
            try:
                for test in tests:
                    result = test()
                    if result is False:
                        return
                    if isinstance(result, Condition):
                        self.facts = (*self.facts, result)
                self.run(node.body)
            finally:
                self.facts = outside

        return run
