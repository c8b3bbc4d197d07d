"""Live ranges of buffers, in operations of the program's text order.

A buffer is live from the first operation that writes it (the start of the transfer, or the compute)
to the last that needs it: a read, or the wait of a transfer from or to it. If an iteration of a loop
may read what an earlier one left, the buffer is live in the whole loop. So is one that is used after a
loop of which some iterations write only a part of it, or nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, evaluate, leaves
from schedc.ir.program import (
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    SemaphoreRef,
    SetScalar,
    Start,
    Wait,
    When,
    walk,
)

_EXPANDED_TRIPS = 64
"""Loops of at most this many iterations are looked at iteration by iteration."""


@dataclass(frozen=True)
class LiveRange:
    buffer: str
    first: int
    last: int
    """Indices of operations in the order of `program.walk`, both included."""


@dataclass(frozen=True)
class _Event:
    """An access to rows low..high-1 of a buffer, or to elements of a semaphore; `rows` None: not known which."""

    storage: tuple[str, str]
    defines: bool
    rows: tuple[int, int] | None
    guard: frozenset[Hashable]
    """The event happens only if all of these hold."""


def live_ranges(program: Program) -> tuple[LiveRange, ...]:
    """The live range of every buffer that is used, in the order of declaration."""
    return _Live(program).ranges()


class _Live:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._sizes = {buffer.name: buffer.rows for buffer in program.buffers}
        self._whole = {buffer.name: buffer.rows * buffer.slots for buffer in program.buffers}
        self._by_semaphore: dict[str, set[str]] = defaultdict(set)
        self._times_set: dict[str, int] = defaultdict(int)
        """How often a scalar array was set so far: guards that read it are the same only in between."""
        for op in walk(program.body):
            if isinstance(op, Start):
                ends = {op.source.storage, op.target.storage} & self._sizes.keys()
                self._by_semaphore[op.semaphore.name] |= ends

    def ranges(self) -> tuple[LiveRange, ...]:
        spans: dict[str, tuple[int, int]] = {}

        def extend(buffer: str, first: int, last: int) -> None:
            a, b = spans.get(buffer, (first, last))
            spans[buffer] = min(a, first), max(b, last)

        partial: list[tuple[str, int, int]] = []
        index = 0

        def visit(ops: tuple[Op, ...]) -> None:
            nonlocal index
            for op in ops:
                here = index
                index += 1
                for buffer in self._touched(op):
                    extend(buffer, here, here)
                if isinstance(op, (Loop, When, Phase)):
                    visit(op.body)
                if isinstance(op, Loop):
                    for buffer in self._carried(op):
                        extend(buffer, here, index - 1)
                    partial.extend((buffer, here, index - 1) for buffer in self._written_partially(op))

        visit(self._program.body)
        for buffer, first, last in partial:
            if spans[buffer][1] > last:
                extend(buffer, first, last)
        return tuple(LiveRange(b.name, *spans[b.name]) for b in self._program.buffers if b.name in spans)

    def _touched(self, op: Op) -> set[str]:
        match op:
            case Start(source, target):
                return {source.storage, target.storage} & self._sizes.keys()
            case Wait(semaphore):
                return self._by_semaphore[semaphore.name]
            case Compute(_, operands):
                return {operand.region.storage for operand in operands}
            case _:
                return set()

    def _written_partially(self, loop: Loop) -> set[str]:
        """Buffers of which an iteration may leave something as an earlier one wrote it.

        What is written, or whether it is, depends on the counter or on a scalar that the loop sets.
        """
        changing = {op.array for op in walk(loop.body) if isinstance(op, SetScalar)}
        found: set[str] = set()

        def varies(exprs: Iterable[Expr]) -> bool:
            return any(
                leaf.name == loop.counter if isinstance(leaf, Counter) else leaf.array in changing
                for expr in exprs
                for leaf in leaves(expr)
            )

        def visit(ops: tuple[Op, ...], uneven: bool) -> None:
            for op in ops:
                match op:
                    case Start(_, target):
                        see([target], uneven)
                    case Compute(_, operands):
                        see([operand.region for operand in operands if operand.access != "read"], uneven)
                    case Loop(_, trips, body):
                        visit(body, uneven or varies([trips]))
                    case When(conditions, body):
                        visit(body, uneven or varies(side for c in conditions for side in (c.left, c.right)))
                    case Phase(_, body):
                        visit(body, uneven)

        def see(regions: list[Region], uneven: bool) -> None:
            found.update(r.storage for r in regions if uneven or varies((r.offset, r.slot)))

        visit(loop.body, False)
        return found & self._sizes.keys()

    def _carried(self, loop: Loop) -> set[str]:
        """Buffers of which an iteration may need what was there when it began."""
        defined: dict[tuple[str, str], list[tuple[int, int, frozenset[Hashable]]]] = defaultdict(list)
        carried: set[str] = set()
        for event in self._events(loop.body, {}, frozenset()):
            kind, name = event.storage
            if event.defines:
                if event.rows is not None:
                    defined[event.storage].append((*event.rows, event.guard))
            elif not _covered(event, defined[event.storage], self._whole.get(name, 1)):
                carried |= {name} if kind == "buffer" else self._by_semaphore[name]
        return carried

    def _events(self, ops: tuple[Op, ...], counters: dict[str, int], guard: frozenset[Hashable]) -> Iterator[_Event]:
        times_set = self._times_set
        for number, op in enumerate(ops):
            match op:
                case Start(source, target, semaphore):
                    yield from self._access(source, False, counters, guard)
                    yield from self._access(target, True, counters, guard)
                    yield self._semaphore(semaphore, True, counters, guard)
                case Wait(semaphore):
                    yield self._semaphore(semaphore, False, counters, guard)
                case Compute(_, operands):
                    for operand in operands:
                        if operand.access != "write":
                            yield from self._access(operand.region, False, counters, guard)
                    for operand in operands:
                        if operand.access == "write":
                            yield from self._access(operand.region, True, counters, guard)
                case Loop(counter, trips, body):
                    count = _known(trips, counters)
                    if count is not None and count <= _EXPANDED_TRIPS:
                        for i in range(count):
                            yield from self._events(body, {**counters, counter: i}, guard)
                    else:
                        inner = {name: value for name, value in counters.items() if name != counter}
                        yield from self._events(body, inner, guard | {("iteration", id(op), number)})
                case When(conditions, body):
                    found = _leaves(conditions)
                    known = tuple(sorted({(x.name, counters[x.name]) for x in found
                                          if isinstance(x, Counter) and x.name in counters}))  # fmt: skip
                    versions = tuple(sorted({(x.array, times_set[x.array]) for x in found if isinstance(x, Element)}))
                    yield from self._events(body, counters, guard | {(conditions, known, versions)})
                case SetScalar(array):
                    times_set[array] += 1
                case Phase(_, body):
                    yield from self._events(body, counters, guard)

    def _access(
        self, region: Region, defines: bool, counters: dict[str, int], guard: frozenset[Hashable]
    ) -> Iterator[_Event]:
        if region.storage in self._sizes:
            offset, slot = _known(region.offset, counters), _known(region.slot, counters)
            rows = None
            if offset is not None and slot is not None:
                first = slot * self._sizes[region.storage] + offset
                rows = first, first + region.rows
            yield _Event(("buffer", region.storage), defines, rows, guard)

    def _semaphore(
        self, ref: SemaphoreRef, defines: bool, counters: dict[str, int], guard: frozenset[Hashable]
    ) -> _Event:
        index = _known(ref.index, counters)
        rows = None if index is None else (index, index + 1)
        return _Event(("semaphore", ref.name), defines, rows, guard)


def _leaves(conditions: tuple[Compare, ...]) -> list[Counter | Element]:
    return [leaf for compare in conditions for side in (compare.left, compare.right) for leaf in leaves(side)]


def _known(expr: Expr, counters: dict[str, int]) -> int | None:
    """The value, if it depends on known counters alone."""
    if isinstance(expr, Const):
        return expr.value
    if all(isinstance(leaf, Counter) and leaf.name in counters for leaf in leaves(expr)):
        return evaluate(expr, counters.__getitem__, lambda array, index: 0)
    return None


def _covered(event: _Event, defined: list[tuple[int, int, frozenset[Hashable]]], whole: int) -> bool:
    low, high = event.rows if event.rows is not None else (0, whole)
    for first, end in sorted((first, end) for first, end, guard in defined if guard <= event.guard):
        if first > low:
            return False
        low = max(low, end)
        if low >= high:
            return True
    return low >= high
