"""Event simulation of one device that executes a program: one instruction stream, HBM shared by its transfers.

The core executes the program in order with concrete scalars: every loop with its trips, every guard decided. A
computation takes its issue cycles; a start, a wait, a guard and a scalar take a few. A wait blocks until its semaphore
holds what it takes. Guarded starts and waits are predicated by the compiler, not jumped over, so they take their issue
slots whether or not they are executed.

How transfers share the HBM is said in `hbm.py`.

Not modelled: what a transfer costs in VMEM ports, instruction fetch, refresh and page misses of the HBM beyond its
fitted rate, other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from schedc.cost.hbm import Hbm, Transfer
from schedc.cost.inputs import default_inputs
from schedc.cost.operations import CycleTable
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
from schedc.target.target import Target

OUTSIDE = "between phases"
"""The phase of what belongs to none, such as the trips of the loop over layers."""

Run = Callable[[], None]


class Stuck(CheckFailed):
    """A wait that nothing in flight can end."""


@dataclass(frozen=True)
class Machine:
    """The constants of a simulation; `replace(machine, clock_ghz=1.6)` tries others."""

    clock_ghz: float
    bytes_per_ns: float
    descriptor_ns: float
    read_latency_ns: float
    """HBM to VMEM."""
    write_latency_ns: float
    """VMEM to HBM."""
    in_flight: int
    """Transfers that share the HBM at a time."""
    table: CycleTable

    @classmethod
    def of(cls, target: Target) -> Machine:
        cost, table = target.cost, CycleTable.on(target.cost)
        return cls(
            clock_ghz=cost.clock_mhz / 1000.0,
            bytes_per_ns=cost.hbm_stream_gb_s,
            descriptor_ns=cost.dma_descriptor_ns,
            read_latency_ns=cost.dma_hbm_to_vmem_ns,
            write_latency_ns=cost.dma_vmem_to_hbm_ns,
            in_flight=table.file.transfers_in_flight.value,
            table=table,
        )

    def without_work(self) -> Machine:
        """Bandwidth and instructions for nothing: what is left is latency."""
        return replace(self, clock_ghz=inf, bytes_per_ns=inf, descriptor_ns=0.0)


@dataclass
class PhaseTime:
    """Where the time of a phase goes, over all its executions."""

    name: str
    executions: int = 0
    compute_cycles: float = 0.0
    issue_cycles: float = 0.0
    """Starts, waits, guards, scalars, loops."""
    time_ns: float = 0.0
    stall_ns: float = 0.0
    """Blocked in waits."""
    transfers: int = 0
    """Started here."""
    bytes_started: int = 0
    bytes_awaited: int = 0
    """What the waits of this phase take: the data it needs, wherever they were started."""
    hbm_latency_ns: float = 0.0
    """HBM idle, every transfer that was started still on its way."""
    hbm_unasked_ns: float = 0.0
    """HBM idle, nothing started that has not arrived."""

    @property
    def cycles(self) -> float:
        return self.compute_cycles + self.issue_cycles

    @property
    def hbm_idle_ns(self) -> float:
        return self.hbm_latency_ns + self.hbm_unasked_ns


@dataclass(frozen=True)
class Event:
    """For a timeline: a computation or a stall on the core, or a transfer (`began`: when it first moved data)."""

    lane: Literal["core", "stall", "hbm"]
    name: str
    phase: str
    issued_ns: float
    began_ns: float
    ended_ns: float
    bytes: int = 0


@dataclass(frozen=True)
class Timeline:
    """One step of one device. Transfers count both directions; `read` and `written` are bytes by HBM array."""

    step_ns: float
    phases: tuple[PhaseTime, ...]
    transfers: int
    read: Mapping[str, int]
    written: Mapping[str, int]
    hbm_busy_ns: float
    notes: tuple[str, ...]
    events: tuple[Event, ...]

    @property
    def hbm_bytes(self) -> int:
        return sum(self.read.values()) + sum(self.written.values())

    @property
    def cycles(self) -> float:
        return sum(phase.cycles for phase in self.phases)

    @property
    def stall_ns(self) -> float:
        return sum(phase.stall_ns for phase in self.phases)

    @property
    def hbm_busy_fraction(self) -> float:
        return self.hbm_busy_ns / self.step_ns if self.step_ns else 0.0

    def phase(self, name: str) -> PhaseTime:
        return next(phase for phase in self.phases if phase.name == name)


def simulate(
    program: Program, machine: Machine, inputs: Mapping[str, Sequence[int]] | None = None, events: bool = False
) -> Timeline:
    """Execute `program` once; `inputs` gives scalar arrays, inputs or computed, in place of `default_inputs`.

    Raises Stuck if a wait can never end, ValueError for inputs that are not the program's, UserError for a program on
    several devices: there is no model of the links between them.
    """
    if program.devices != 1:
        raise UserError(f"{program.name} runs on {program.devices} devices; only one device can be simulated")
    given = default_inputs(program)
    for name, values in (inputs or {}).items():
        if name not in given or len(values) != len(given[name]):
            raise ValueError(f"{program.name} has no input {name} of {len(values)} integers")
        given[name] = list(values)
    return _Device(program, machine, given, events).run()


@dataclass
class _Mark:
    """Totals at the moment the core entered the current phase."""

    now: float = 0.0
    busy: float = 0.0
    latency: float = 0.0


@dataclass
class _Device:
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
                return self._start(op, scope, phase)
            case Wait(semaphore, amount) | Await(semaphore, amount):
                bytes_awaited = amount * ROW_BYTES if isinstance(op, Wait) else 0
                return self._wait(semaphore, amount, bytes_awaited, scope, phase)
            case Signal(semaphore, amount, None):
                return self._signal(semaphore, amount, scope, phase)
            case RemoteStart() | Signal() | Barrier():
                raise UserError(f"{self.program.name}: `{print_op(op)}` needs other devices, only one can be simulated")
            case Compute():
                return self._compute(op, phase)
            case SetScalar():
                return self._set(op, scope, phase)

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

        cases = [self._guarded(is_selected(case.value), case.body, scope, phase) for case in op.body]

        def run() -> None:
            tick()
            selected[0] = selector(self.counters, self.scalars)
            for case in cases:
                case()

        return run

    def _start(self, op: Start, scope: dict[str, int], phase: PhaseTime) -> Run:
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
            transfer = Transfer(counts, index(self.counters, self.scalars), rows, need, self.now, names=names)
            self.hbm.submit(transfer, latency)
            phase.transfers += 1
            phase.bytes_started += size
            for total, name in moved:
                total[name] = total.get(name, 0) + size

        return run

    def _wait(self, ref: SemaphoreRef, amount: int, size: int, scope: dict[str, int], phase: PhaseTime) -> Run:
        counts, index = self._semaphore(ref, scope)
        tick, hbm = self._issue("wait", phase), self.hbm

        def run() -> None:
            tick()
            hbm.advance(self.now)
            at = index(self.counters, self.scalars)
            if counts[at] < amount:
                self._block(counts, at, amount, ref.name, phase)
            counts[at] -= amount
            phase.bytes_awaited += size

        return run

    def _block(self, counts: list[int], at: int, amount: int, name: str, phase: PhaseTime) -> None:
        began = self.now
        while counts[at] < amount:
            if not self.hbm.step():
                raise Stuck(
                    f"{self.program.name}: the wait for {amount} of {name}[{at}] in phase {phase.name!r} never ends: "
                    f"it holds {counts[at]} and nothing is in flight"
                )
        self.now = self.hbm.now
        phase.stall_ns += self.now - began
        if self.keep_events:
            self.events.append(Event("stall", f"{name}[{at}]", phase.name, began, began, self.now))

    def _signal(self, ref: SemaphoreRef, amount: int, scope: dict[str, int], phase: PhaseTime) -> Run:
        counts, index = self._semaphore(ref, scope)
        tick = self._issue("signal", phase)

        def run() -> None:
            tick()
            counts[index(self.counters, self.scalars)] += amount

        return run

    def _compute(self, op: Compute, phase: PhaseTime) -> Run:
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
                self.events.append(Event("core", op.kind, phase.name, began, began, self.now))

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
        self.events.append(Event("hbm", name, phase, transfer.issued, transfer.began, ended, size))

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
