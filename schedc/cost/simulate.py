"""Event simulation of one device that executes a program: one instruction stream, HBM shared by its transfers.

Other devices are taken to do the same at the same time: what device 0 sends in an operation arrives from a peer as it
would arrive there. Links are said in `links.py`.

The core executes the program in order with concrete scalars: every loop with its trips, every guard decided. A
computation takes its issue cycles; a start, a wait, a guard and a scalar take a few. A wait blocks until its semaphore
holds what it takes. Guarded starts and waits are predicated by the compiler, not jumped over, so they take their issue
slots whether or not they are executed.

How transfers share the HBM is said in `hbm.py`.

Not modelled: what a transfer costs in VMEM ports, instruction fetch, refresh and page misses of the HBM beyond its
fitted rate, devices that are late, what transfers between devices take of the HBM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from schedc.cost.hbm import Hbm, Transfer
from schedc.cost.inputs import default_inputs
from schedc.cost.links import Links
from schedc.cost.machine import Machine
from schedc.cost.timeline import OUTSIDE, Event, PhaseTime, Timeline
from schedc.errors import CheckFailed, UserError
from schedc.ir.expr import Binary, Compare, Const, Counter, Element, Expr, Rank
from schedc.ir.program import (
    ROW_BYTES,
    Await,
    Barrier,
    Case,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    RemoteStart,
    SemaphoreRef,
    SetScalar,
    Signal,
    Start,
    Switch,
    Wait,
    When,
)
from schedc.ir.text_print import print_op

Run = Callable[[], None]


class Stuck(CheckFailed):
    """A wait that nothing in flight can end."""


def simulate(
    program: Program, machine: Machine, inputs: Mapping[str, Sequence[int]] | None = None, events: bool = False
) -> Timeline:
    """Execute `program` once; `inputs` gives scalar arrays, inputs or computed, in place of `default_inputs`.

    Raises Stuck if a wait can never end, ValueError for inputs that are not the program's, UserError for a program of
    one device that wants others.
    """
    return Device(program, machine, inputs_of(program, inputs), events).run()


def inputs_of(program: Program, inputs: Mapping[str, Sequence[int]] | None) -> dict[str, list[int]]:
    """The scalars of a step: the default ones, but for those that `inputs` gives. Raises ValueError."""
    given = default_inputs(program)
    for name, values in (inputs or {}).items():
        if name not in given or len(values) != len(given[name]):
            raise ValueError(f"{program.name} has no input {name} of {len(values)} integers")
        given[name] = list(values)
    return given


@dataclass
class _Mark:
    """Totals at the moment the core entered the current phase."""

    now: float = 0.0
    busy: float = 0.0
    latency: float = 0.0


@dataclass
class Device:
    """One device at work; `schedc/explore/fast/trace.py` has one that only takes notes."""

    program: Program
    machine: Machine
    inputs: Mapping[str, list[int]]
    keep_events: bool
    now: float = 0.0
    read: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.program
        self.arrays = {array.name for array in program.arrays}
        self.scalars = [self.inputs.get(s.name) or list(s.values) or [s.low] * s.length for s in program.scalars]
        self.scalar_index = {s.name: index for index, s in enumerate(program.scalars)}
        self.counts = {s.name: [0] * s.count for s in program.semaphores}
        self.counters: list[int] = []
        self.phases: dict[str, PhaseTime] = {}
        self.outside = self.current = PhaseTime(OUTSIDE)
        self.mark = _Mark()
        self.compiled = 0
        """Operations that have been made closures, in the order of `program.walk`."""
        self.links = Links(self.machine.network)
        self.hbm = Hbm(self.machine.in_flight, self._transferred if self.keep_events else None)

    def run(self) -> Timeline:
        for step in self._compiled(self.program.body, {}, self.outside):
            step()
        self._enter(self.outside)
        phases = (*self.phases.values(), *([self.outside] if self.outside.time_ns else []))
        return Timeline(
            step_ns=self.now,
            phases=phases,
            transfers=sum(phase.transfers for phase in phases),
            read=self.read,
            written=self.written,
            sent=sum(phase.bytes_sent for phase in phases),
            hbm_busy_ns=self.hbm.busy_ns,
            notes=tuple(self.notes),
            events=tuple(self.events),
        )

    def _enter(self, phase: PhaseTime) -> PhaseTime:
        """Charge the time since the last call to the phase the core was in, and go to `phase`."""
        self.hbm.advance(self.now)
        mark, hbm, left = self.mark, self.hbm, self.current
        passed, latency = self.now - mark.now, hbm.latency_ns - mark.latency
        left.time_ns += passed
        left.hbm_latency_ns += latency
        left.hbm_unasked_ns += max(0.0, passed - latency - (hbm.busy_ns - mark.busy))
        self.mark = _Mark(self.now, hbm.busy_ns, hbm.latency_ns)
        self.current = phase
        return left

    # Operations as closures

    def _compiled(self, ops: tuple[Op, ...], scope: dict[str, int], phase: PhaseTime) -> list[Run]:
        return [self._compile(op, scope, phase) for op in ops]

    def _compile(self, op: Op, scope: dict[str, int], phase: PhaseTime) -> Run:
        number = self._numbered()
        match op:
            case Phase():
                return self._phase(op, scope)
            case Loop():
                return self._loop(op, scope, phase)
            case When():
                return self._when(op, scope, phase)
            case Switch():
                return self._switch(op, scope, phase)
            case Case(value):
                raise UserError(f"{self.program.name}: case {value} stands outside a switch")
            case Start():
                return self._start(op, scope, phase, number)
            case Wait(semaphore, amount) | Await(semaphore, amount):
                bytes_awaited = amount * ROW_BYTES if isinstance(op, Wait) else 0
                return self._wait(semaphore, amount, bytes_awaited, scope, phase, number)
            case Signal(semaphore, amount, None):
                return self._signal(semaphore, amount, scope, phase)
            case RemoteStart() | Signal() | Barrier() if self.program.devices == 1:
                raise UserError(f"{self.program.name}: `{print_op(op)}` needs other devices, the program has one")
            case RemoteStart():
                return self._remote_start(op, scope, phase, number)
            case Signal(semaphore, amount, peer):
                assert peer is not None
                return self._signal_peer(semaphore, amount, peer, scope, phase)
            case Barrier():
                return self._barrier(phase, number)
            case Compute():
                return self._compute(op, phase, number)
            case SetScalar():
                return self._set(op, scope, phase)

    def _numbered(self) -> int:
        self.compiled += 1
        return self.compiled - 1

    def _phase(self, op: Phase, scope: dict[str, int]) -> Run:
        phase = self.phases.setdefault(op.name, PhaseTime(op.name))
        body = self._compiled(op.body, scope, phase)

        def run() -> None:
            outer = self._enter(phase)
            phase.executions += 1
            for step in body:
                step()
            self._enter(outer)

        return run

    def _loop(self, op: Loop, scope: dict[str, int], phase: PhaseTime) -> Run:
        index = len(self.counters)
        self.counters.append(0)
        trips = self._expression(op.trips, scope)
        body = self._compiled(op.body, {**scope, op.counter: index}, phase)
        tick = self._issue("loop", phase) if not op.unroll else None
        counters = self.counters

        def run() -> None:
            for value in range(trips(counters, self.scalars)):
                counters[index] = value
                if tick:
                    tick()
                for step in body:
                    step()

        return run

    def _when(self, op: When, scope: dict[str, int], phase: PhaseTime) -> Run:
        return self._guarded(self._condition(op.conditions, scope), op.body, scope, phase)

    def _guarded(self, holds: Value, ops: tuple[Op, ...], scope: dict[str, int], phase: PhaseTime) -> Run:
        body = self._compiled(ops, scope, phase)
        tick = self._issue("when", phase)
        predicated = [self._issue(type(o).__name__.lower(), phase) for o in ops if isinstance(o, (Start, Wait))]

        def run() -> None:
            tick()
            for step in body if holds(self.counters, self.scalars) else predicated:
                step()

        return run

    def _switch(self, op: Switch, scope: dict[str, int], phase: PhaseTime) -> Run:
        """The selector is read once, then every case is guarded by itself."""
        selector = self._expression(op.selector, scope)
        tick, selected = self._issue("scalar", phase), [0]

        def is_selected(value: int) -> Value:
            return lambda counters, scalars: selected[0] == value

        cases = []
        for case in op.body:
            self._numbered()
            cases.append(self._guarded(is_selected(case.value), case.body, scope, phase))

        def run() -> None:
            tick()
            selected[0] = selector(self.counters, self.scalars)
            for case in cases:
                case()

        return run

    def _start(self, op: Start, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        counts, index = self._semaphore(op.semaphore, scope)
        rows, machine = op.source.rows, self.machine
        size = rows * ROW_BYTES
        reads, writes = (op.source.storage in self.arrays), (op.target.storage in self.arrays)
        need = machine.descriptor_ns + size * max(1, reads + writes) / machine.bytes_per_ns
        latency = machine.write_latency_ns if writes else machine.read_latency_ns
        names = (f"{op.source.storage} -> {op.target.storage}", phase.name)
        tick = self._issue("start", phase)
        moved = [(self.read, op.source.storage)] if reads else []
        moved += [(self.written, op.target.storage)] if writes else []

        def run() -> None:
            tick()
            transfer = Transfer(
                counts, index(self.counters, self.scalars), rows, need, self.now, names=names, op=number
            )
            self.hbm.submit(transfer, latency)
            phase.transfers += 1
            phase.bytes_started += size
            for total, name in moved:
                total[name] = total.get(name, 0) + size

        return run

    def _remote_start(self, op: RemoteStart, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        """It leaves here, and one of the same size arrives here from another device, over the same kind of link."""
        sent, arrived = (self._semaphore(ref, scope) for ref in (op.sent, op.arrived))
        peer, rows = self._expression(op.peer, scope), op.source.rows
        names = (f"{op.source.storage} -> {op.target.storage}", phase.name)
        tick = self._issue("start", phase)

        def run() -> None:
            tick()
            route = self.links.route(0, peer(self.counters, self.scalars))
            left, there = self.links.send(route, rows * ROW_BYTES, self.now)
            for time, (counts, index) in ((left, sent), (there, arrived)):
                self.links.deliver(time, counts, index(self.counters, self.scalars), rows)
            phase.bytes_sent += rows * ROW_BYTES
            if self.keep_events:
                began = left - self.links.duration(route, rows * ROW_BYTES)
                self.events.append(Event("link", *names, self.now, began, there, rows * ROW_BYTES, number))

        return run

    def _signal_peer(
        self, ref: SemaphoreRef, amount: int, peer_expr: Expr, scope: dict[str, int], phase: PhaseTime
    ) -> Run:
        counts, index = self._semaphore(ref, scope)
        peer, tick = self._expression(peer_expr, scope), self._issue("signal", phase)

        def run() -> None:
            tick()
            route = self.links.route(0, peer(self.counters, self.scalars))
            _, there = self.links.send(route, 0, self.now)
            self.links.deliver(there, counts, index(self.counters, self.scalars), amount)

        return run

    def _barrier(self, phase: PhaseTime, number: int) -> Run:
        """All come at the same time: the signals' way is what it takes."""
        peers = range(1, self.program.devices)
        ticks = [*(self._issue("signal", phase) for _ in peers), self._issue("wait", phase)]

        def run() -> None:
            began = self.now
            for tick in ticks:
                tick()
            last = began + max(self.links.latency(self.links.route(0, peer)) for peer in peers)
            reached = self.now
            if last > self.now:
                self._stall_until(last, "barrier", phase, number)
            if self.keep_events:
                self.events.append(Event("wait", "barrier", phase.name, reached, reached, self.now, op=number))

        return run

    def _wait(
        self, ref: SemaphoreRef, amount: int, size: int, scope: dict[str, int], phase: PhaseTime, number: int
    ) -> Run:
        counts, index = self._semaphore(ref, scope)
        tick, hbm, links = self._issue("wait", phase), self.hbm, self.links

        def run() -> None:
            tick()
            hbm.advance(self.now)
            links.advance(self.now)
            at = index(self.counters, self.scalars)
            reached = self.now
            if counts[at] < amount:
                self._block(counts, at, amount, ref.name, phase, number)
            counts[at] -= amount
            if self.keep_events:
                self.events.append(
                    Event("wait", f"{ref.name}[{at}]", phase.name, reached, reached, self.now, op=number)
                )
            phase.bytes_awaited += size

        return run

    def _block(self, counts: list[int], at: int, amount: int, name: str, phase: PhaseTime, number: int) -> None:
        until = self.now
        while counts[at] < amount:
            until = min(self.hbm.next_time(), self.links.next_time())
            if until == inf:
                several = (
                    "; all devices are taken to do the same, so a step in which they take turns cannot be simulated"
                    if self.program.devices > 1
                    else ""
                )
                raise Stuck(
                    f"{self.program.name}: the wait for {amount} of {name}[{at}] in phase {phase.name!r} never ends: "
                    f"it holds {counts[at]} and nothing is in flight{several}"
                )
            self.hbm.advance(until)
            self.links.advance(until)
        self._stall_until(until, f"{name}[{at}]", phase, number)

    def _stall_until(self, time: float, what: str, phase: PhaseTime, number: int) -> None:
        began, self.now = self.now, time
        phase.stall_ns += time - began
        if self.keep_events:
            self.events.append(Event("stall", what, phase.name, began, began, time, op=number))

    def _signal(self, ref: SemaphoreRef, amount: int, scope: dict[str, int], phase: PhaseTime) -> Run:
        counts, index = self._semaphore(ref, scope)
        tick = self._issue("signal", phase)

        def run() -> None:
            tick()
            counts[index(self.counters, self.scalars)] += amount

        return run

    def _compute(self, op: Compute, phase: PhaseTime, number: int) -> Run:
        cycles, note = self.machine.table.cycles(op)
        if note:
            self.notes[note] = None
        time = cycles / self.machine.clock_ghz
        sets = [(self.scalars[self.scalar_index[array]], self.inputs[array]) for _, array in op.sets]

        def run() -> None:
            began = self.now
            self.now += time
            phase.compute_cycles += cycles
            for elements, values in sets:
                elements[:] = values
            if self.keep_events:
                self.events.append(Event("core", op.kind, phase.name, began, began, self.now, op=number))

        return run

    def _set(self, op: SetScalar, scope: dict[str, int], phase: PhaseTime) -> Run:
        values = self.scalars[self.scalar_index[op.array]]
        index, value = self._expression(op.index, scope), self._expression(op.value, scope)
        tick = self._issue("scalar", phase)

        def run() -> None:
            tick()
            values[index(self.counters, self.scalars)] = value(self.counters, self.scalars)

        return run

    def _issue(self, kind: str, phase: PhaseTime) -> Run:
        cycles = self.machine.table.issue(kind)
        time = cycles / self.machine.clock_ghz

        def run() -> None:
            self.now += time
            phase.issue_cycles += cycles

        return run

    def _transferred(self, transfer: Transfer, ended: float) -> None:
        name, phase = transfer.names
        size = transfer.rows * ROW_BYTES
        self.events.append(Event("hbm", name, phase, transfer.issued, transfer.began, ended, size, transfer.op))

    # Expressions as functions of the counters and the scalar arrays

    def _semaphore(self, ref: SemaphoreRef, scope: dict[str, int]) -> tuple[list[int], Value]:
        return self.counts[ref.name], self._expression(ref.index, scope)

    def _expression(self, expr: Expr, scope: dict[str, int]) -> Value:
        return _function(self._text(expr, scope))

    def _condition(self, conditions: tuple[Compare, ...], scope: dict[str, int]) -> Value:
        texts = (f"{self._text(c.left, scope)} {c.op} {self._text(c.right, scope)}" for c in conditions)
        return _function(" and ".join(texts) or "True")

    def _text(self, expr: Expr, scope: dict[str, int]) -> str:
        match expr:
            case Const(value):
                return f"({value})"
            case Counter(name):
                return f"c[{scope[name]}]"
            case Rank():
                return "(0)"
            case Element(array, index):
                return f"s[{self.scalar_index[array]}][{self._text(index, scope)}]"
            case Binary("min" | "max" as op, left, right):
                return f"{op}({self._text(left, scope)}, {self._text(right, scope)})"
            case Binary(op, left, right):
                return f"({self._text(left, scope)} {op} {self._text(right, scope)})"


Value = Callable[[list[int], list[list[int]]], int]


def _function(text: str) -> Value:
    """Python's own compiler is the fastest evaluator; `text` has only integers, operators and subscripts of c and s."""
    function: Value = eval(f"lambda c, s: {text}")
    return function
