"""Event simulation of one device that executes a program: one instruction stream, HBM shared by its transfers.

The core executes the program in order with concrete scalars: every loop with its trips, every guard decided. Every
operation takes the issue cycles that `Machine.priced` gives for one execution of it, by a table or a profile: a
computation, a start, a wait, a guard, a scalar, a trip of a loop (its edge). A wait blocks until its semaphore holds
what it takes. Starts and waits that stand directly in a guard are predicated by the compiler, not jumped over, so they
take their issue slots whether or not they are executed; of a guard that does not hold nothing else is charged. The body
of an unrolled loop is charged copy by copy, and has no edge.

Other devices are taken to do the same at the same time: what device 0 sends in an operation arrives from a peer as it
would arrive there, `Machine.skew_ns` later if peers are late. Links are said in `links.py`, how transfers share the HBM
in `hbm.py`. A start submits its transfer when its issue cycles have passed, and a wait looks at its semaphore when its
own have.

Scalars that computations set are what is given for them, else what is expected of them: an expectation that is no
whole number, such as 5.87 different experts on the slowest device of a layer (`routing.py`), is met by its two
neighbours in turn, execution by execution over the whole program, so that their mean is the expectation: the n-th
gets floor((n + 1) x) - floor(n x). What is not known is the most work (`default_inputs`).

Not modelled: what a transfer costs in VMEM ports, instruction fetch, refresh and page misses of the HBM beyond its
fitted rate, what transfers between devices take of the HBM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor, inf

from schedc.cost.hbm import Hbm, Transfer
from schedc.cost.inputs import Inputs, default_inputs, first_values
from schedc.cost.links import Links
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.timeline import OUTSIDE, Event, PhaseTime, Timeline
from schedc.cost.values import Value, condition_of, value_of
from schedc.errors import CheckFailed, UserError
from schedc.ir.expr import Expr
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
    numbered,
)
from schedc.ir.text_print import print_op
from schedc.ir.uses import transfer_name

Run = Callable[[], None]


class Stuck(CheckFailed):
    """A wait that nothing in flight can end."""


def simulate(
    program: Program,
    machine: Machine,
    inputs: Inputs | None = None,
    events: bool = False,
    load: Load = DEFAULT_LOAD,
) -> Timeline:
    """Execute `program` once; `inputs` gives scalar arrays, inputs or computed, in place of what `load` lets expect.

    `events` keeps what happened. Raises Stuck if a wait can never end, ValueError for inputs that are not the
    program's, UserError for a program of one device that wants others.
    """
    return Device(program, machine, inputs_of(program, inputs, load), events).run()


def inputs_of(program: Program, inputs: Inputs | None, load: Load = DEFAULT_LOAD) -> dict[str, list[float]]:
    """The scalars of a step: the default ones, but for those that `inputs` gives. Raises ValueError."""
    given = default_inputs(program, load=load, active=(inputs or {}).get("active"))
    for name, values in (inputs or {}).items():
        if name not in given:
            raise ValueError(f"{program.name} has no input {name}; it has {', '.join(given)}")
        if len(values) != len(given[name]):
            raise ValueError(f"input {name} of {program.name} is {len(given[name])} integers, not {len(values)}")
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
    """One device at work. `traced.py` has one that keeps what it did, `schedc/explore` one that only takes notes."""

    program: Program
    machine: Machine
    inputs: Inputs
    keep_events: bool = False
    now: float = 0.0
    read: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.program
        self.arrays = {array.name for array in program.arrays}
        self.scalars = list(first_values(program, self.inputs).values())
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
        self.prices = self.machine.priced(program)
        self.met: dict[float, int] = {}
        """How often each fractional input has been met by one of its neighbours."""

    def run(self) -> Timeline:
        """Execute the program once. Raises Stuck if a wait can never end."""
        for step in self.closures(self.program.body, {}, self.outside):
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
            notes=self.prices.notes,
            events=tuple(self.events),
            priced_by=self.prices.source,
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

    def closures(self, ops: tuple[Op, ...], scope: dict[str, int], phase: PhaseTime) -> list[Run]:
        return [self._compile(op, scope, phase) for op in ops]

    def _compile(self, op: Op, scope: dict[str, int], phase: PhaseTime) -> Run:
        number = self._numbered()
        match op:
            case Phase():
                return self._phase(op, scope)
            case Loop():
                return self._loop(op, scope, phase, number)
            case When(conditions, body):
                return self._guarded(condition_of(conditions, scope, self.scalar_index), body, scope, phase, number)
            case Switch():
                return self._switch(op, scope, phase, number)
            case Case(value):
                raise UserError(f"{self.program.name}: case {value} stands outside a switch")
            case Start():
                return self._start(op, scope, phase, number)
            case Wait(semaphore, amount) | Await(semaphore, amount):
                bytes_awaited = amount * ROW_BYTES if isinstance(op, Wait) else 0
                return self._wait(semaphore, amount, bytes_awaited, scope, phase, number)
            case Signal(semaphore, amount, None):
                return self._signal(semaphore, amount, scope, phase, number)
            case RemoteStart() | Signal() | Barrier() if self.program.devices == 1:
                raise UserError(f"{self.program.name}: `{print_op(op)}` needs other devices, the program has one")
            case RemoteStart():
                return self._remote_start(op, scope, phase, number)
            case Signal(semaphore, amount, peer):
                assert peer is not None
                return self._signal_peer(semaphore, amount, peer, scope, phase, number)
            case Barrier():
                return self._barrier(phase, number)
            case Compute():
                return self._compute(op, phase, number)
            case SetScalar():
                return self._set(op, scope, phase, number)

    def _numbered(self) -> int:
        self.compiled += 1
        return self.compiled - 1

    def _phase(self, op: Phase, scope: dict[str, int]) -> Run:
        phase = self.phases.setdefault(op.name, PhaseTime(op.name))
        body = self.closures(op.body, scope, phase)

        def run() -> None:
            outer = self._enter(phase)
            phase.executions += 1
            for step in body:
                step()
            self._enter(outer)

        return run

    def _loop(self, op: Loop, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        index = len(self.counters)
        self.counters.append(0)
        trips = value_of(op.trips, scope, self.scalar_index)
        body = self.closures(op.body, {**scope, op.counter: index}, phase)
        tick = self._issue(number, phase) if not op.unroll else None
        counters = self.counters

        def run() -> None:
            for value in range(trips(counters, self.scalars)):
                counters[index] = value
                if tick:
                    tick()
                for step in body:
                    step()

        return run

    def _guarded(self, holds: Value, ops: tuple[Op, ...], scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        """Operation `number`, a guard or a case; `ops` are the next ones."""
        tick = self._issue(number, phase)
        predicated = [self._issue(at, phase) for at, op in numbered(ops, self.compiled) if isinstance(op, Start | Wait)]
        body = self.closures(ops, scope, phase)

        def run() -> None:
            tick()
            for step in body if holds(self.counters, self.scalars) else predicated:
                step()

        return run

    def _switch(self, op: Switch, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        """The selector is read once, then every case is guarded by itself."""
        selector = value_of(op.selector, scope, self.scalar_index)
        tick, selected = self._issue(number, phase), [0]

        def is_selected(value: int) -> Value:
            return lambda counters, scalars: selected[0] == value

        cases = [self._guarded(is_selected(case.value), case.body, scope, phase, self._numbered()) for case in op.body]

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
        names = (transfer_name(op), phase.name)
        tick = self._issue(number, phase)
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
        peer, rows = value_of(op.peer, scope, self.scalar_index), op.source.rows
        names = (transfer_name(op), phase.name)
        tick, skew, size = self._issue(number, phase), self.machine.skew_ns, rows * ROW_BYTES

        def run() -> None:
            tick()
            route = self.links.route(0, peer(self.counters, self.scalars))
            left, there = self.links.send(route, size, self.now)
            for time, (counts, index) in ((left, sent), (there + skew, arrived)):
                self.links.deliver(time, counts, index(self.counters, self.scalars), rows)
            phase.bytes_sent += size
            if self.keep_events:
                began = left - self.links.duration(route, size)
                self.events.append(Event("link", *names, self.now, began, there + skew, size, number))

        return run

    def _signal_peer(
        self, ref: SemaphoreRef, amount: int, peer_expr: Expr, scope: dict[str, int], phase: PhaseTime, number: int
    ) -> Run:
        counts, index = self._semaphore(ref, scope)
        peer, tick = value_of(peer_expr, scope, self.scalar_index), self._issue(number, phase)
        skew = self.machine.skew_ns

        def run() -> None:
            tick()
            route = self.links.route(0, peer(self.counters, self.scalars))
            _, there = self.links.send(route, 0, self.now)
            self.links.deliver(there + skew, counts, index(self.counters, self.scalars), amount)

        return run

    def _barrier(self, phase: PhaseTime, number: int) -> Run:
        """All come at the same time, but for their skew: the signals' way is what it takes."""
        peers, skew, tick = range(1, self.program.devices), self.machine.skew_ns, self._issue(number, phase)

        def run() -> None:
            began = self.now
            tick()
            last = began + max(self.links.latency(self.links.route(0, peer)) for peer in peers) + skew
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
        tick, hbm, links = self._issue(number, phase), self.hbm, self.links

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

    def _signal(self, ref: SemaphoreRef, amount: int, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        counts, index = self._semaphore(ref, scope)
        tick = self._issue(number, phase)

        def run() -> None:
            tick()
            counts[index(self.counters, self.scalars)] += amount

        return run

    def _compute(self, op: Compute, phase: PhaseTime, number: int) -> Run:
        cycles = self.prices.cycles[number]
        time = cycles / self.machine.clock_ghz
        sets = [(self.scalars[self.scalar_index[array]], self.inputs[array]) for _, array in op.sets]
        whole = [([round(value) for value in values], into) for into, values in sets if _is_whole(values)]
        drawn = [(values, into) for into, values in sets if not _is_whole(values)]

        def run() -> None:
            began = self.now
            self.now += time
            phase.compute_cycles += cycles
            for found, elements in whole:
                elements[:] = found
            for expected, elements in drawn:
                elements[:] = [self._neighbour(value) for value in expected]
            if self.keep_events:
                self.events.append(Event("core", op.kind, phase.name, began, began, self.now, op=number))

        return run

    def _neighbour(self, expected: float) -> int:
        """The next of the whole numbers around an expectation whose mean it is."""
        met = self.met.get(expected, 0)
        self.met[expected] = met + 1
        return floor((met + 1) * expected + 1e-6) - floor(met * expected + 1e-6)

    def _set(self, op: SetScalar, scope: dict[str, int], phase: PhaseTime, number: int) -> Run:
        values = self.scalars[self.scalar_index[op.array]]
        index, value = (value_of(expr, scope, self.scalar_index) for expr in (op.index, op.value))
        tick = self._issue(number, phase)

        def run() -> None:
            tick()
            values[index(self.counters, self.scalars)] = value(self.counters, self.scalars)

        return run

    def _issue(self, number: int, phase: PhaseTime) -> Run:
        cycles = self.prices.cycles[number]
        time = cycles / self.machine.clock_ghz

        def run() -> None:
            self.now += time
            phase.issue_cycles += cycles

        return run

    def _semaphore(self, ref: SemaphoreRef, scope: dict[str, int]) -> tuple[list[int], Value]:
        return self.counts[ref.name], value_of(ref.index, scope, self.scalar_index)

    def _transferred(self, transfer: Transfer, ended: float) -> None:
        name, phase = transfer.names
        size = transfer.rows * ROW_BYTES
        self.events.append(Event("hbm", name, phase, transfer.issued, transfer.began, ended, size, transfer.op))


def _is_whole(values: Sequence[float]) -> bool:
    return all(value == round(value) for value in values)
