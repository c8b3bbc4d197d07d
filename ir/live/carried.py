"""Buffers of which an iteration of a loop may need what was there when it began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from schedc.ir.expr import Counter, Element, Expr, Rank, leaves
from schedc.ir.live.known import known
from schedc.ir.program import (
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    Region,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Start,
    Switch,
    Wait,
    When,
)
from schedc.ir.uses import operands, values

_EXPANDED_TRIPS = 64
"""Loops of at most this many iterations are looked at iteration by iteration."""

Guard = frozenset[Hashable]


@dataclass(frozen=True)
class _Event:
    """An access to rows low..high-1 of a buffer, or to elements of a semaphore; `rows` None: not known which."""

    storage: tuple[str, str]
    defines: bool
    rows: tuple[int, int] | None
    guard: Guard
    """The event happens only if all of these hold."""


class Carried:
    def __init__(self, program: Program, by_semaphore: Mapping[str, set[str]]) -> None:
        self._sizes = {buffer.name: buffer.rows for buffer in program.buffers}
        self._whole = {buffer.name: buffer.rows * buffer.slots for buffer in program.buffers}
        self._by_semaphore = by_semaphore
        self._times_set: dict[str, int] = defaultdict(int)
        """How often a scalar array was set so far: guards that read it are the same only in between."""

    def by(self, loop: Loop) -> set[str]:
        """The buffers that the loop carries from one iteration to a later one."""
        defined: dict[tuple[str, str], list[tuple[int, int, Guard]]] = defaultdict(list)
        carried: set[str] = set()
        for event in self._events(loop.body, {}, frozenset()):
            kind, name = event.storage
            if event.defines:
                if event.rows is not None:
                    defined[event.storage].append((*event.rows, event.guard))
            elif not _covered(event, defined[event.storage], self._whole.get(name, 1)):
                carried |= {name} if kind == "buffer" else self._by_semaphore.get(name, set())
        return carried

    def _events(self, ops: tuple[Op, ...], counters: dict[str, int], guard: Guard) -> Iterator[_Event]:
        for number, op in enumerate(ops):
            match op:
                case Start(_, _, semaphore):
                    yield from self._accesses(op, counters, guard)
                    yield self._semaphore(semaphore, True, counters, guard)
                case RemoteStart(source, _, _, sent):
                    yield from self._access(source, False, counters, guard)
                    yield self._semaphore(sent, True, counters, guard)
                case Wait(semaphore):
                    yield self._semaphore(semaphore, False, counters, guard)
                case Compute():
                    for _, array in op.sets:
                        self._times_set[array] += 1
                    yield from self._accesses(op, counters, guard)
                case Loop(counter, trips, body):
                    count = known(trips, counters)
                    if count is not None and count <= _EXPANDED_TRIPS:
                        for i in range(count):
                            yield from self._events(body, {**counters, counter: i}, guard)
                    else:
                        inner = {name: value for name, value in counters.items() if name != counter}
                        yield from self._events(body, inner, guard | {("iteration", id(op), number)})
                case When(conditions, body):
                    holds = (conditions, self._version(values(op), counters))
                    yield from self._events(body, counters, guard | {holds})
                case Switch():
                    yield from self._cases(op, counters, guard)
                case SetScalar(array):
                    self._times_set[array] += 1
                case Phase(_, body):
                    yield from self._events(body, counters, guard)

    def _cases(self, switch: Switch, counters: dict[str, int], guard: Guard) -> Iterator[_Event]:
        """The events of each case under its value; then what every case defines, as one of them runs."""
        version = self._version(values(switch), counters)
        in_all: set[_Event] | None = None
        for case in switch.body:
            inner = guard | {(switch.selector, case.value, version)}
            definitions = set()
            for event in self._events(case.body, counters, inner):
                yield event
                if event.defines and event.guard == inner:
                    definitions.add(replace(event, guard=guard))
            in_all = definitions if in_all is None else in_all & definitions
        yield from sorted(in_all or (), key=lambda event: (event.storage, event.rows or (-1, -1)))

    def _version(self, exprs: tuple[Expr, ...], counters: dict[str, int]) -> Hashable:
        """What tells apart two values of the same expressions."""
        found: list[Counter | Rank | Element] = [leaf for expr in exprs for leaf in leaves(expr)]
        names = {leaf.name for leaf in found if isinstance(leaf, Counter) and leaf.name in counters}
        arrays = {leaf.array for leaf in found if isinstance(leaf, Element)}
        return (
            tuple(sorted((name, counters[name]) for name in names)),
            tuple(sorted((array, self._times_set[array]) for array in arrays)),
        )

    def _accesses(self, op: Op, counters: dict[str, int], guard: Guard) -> Iterator[_Event]:
        """What it reads, then what it writes without reading it."""
        for operand in sorted(operands(op), key=lambda operand: not operand.reads):
            yield from self._access(operand.region, not operand.reads, counters, guard)

    def _access(self, region: Region, defines: bool, counters: dict[str, int], guard: Guard) -> Iterator[_Event]:
        if region.storage in self._sizes:
            offset, slot = known(region.offset, counters), known(region.slot, counters)
            rows = None
            if offset is not None and slot is not None:
                first = slot * self._sizes[region.storage] + offset
                rows = first, first + region.rows
            yield _Event(("buffer", region.storage), defines, rows, guard)

    def _semaphore(self, ref: SemaphoreRef, defines: bool, counters: dict[str, int], guard: Guard) -> _Event:
        index = known(ref.index, counters)
        rows = None if index is None else (index, index + 1)
        return _Event(("semaphore", ref.name), defines, rows, guard)


def _covered(event: _Event, defined: list[tuple[int, int, Guard]], whole: int) -> bool:
    low, high = event.rows if event.rows is not None else (0, whole)
    for first, end in sorted((first, end) for first, end, guard in defined if guard <= event.guard):
        if first > low:
            return False
        low = max(low, end)
        if low >= high:
            return True
    return low >= high
