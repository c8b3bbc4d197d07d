"""The simulated device, keeping a trace: two or three times slower, for analyses of one step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedc.cost.hbm import Hbm, Transfer
from schedc.cost.inputs import Inputs
from schedc.cost.links import Links, Route
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import Device, Run, inputs_of
from schedc.cost.timeline import PhaseTime, Timeline
from schedc.cost.trace import Executed, Flight, Touches, Trace
from schedc.cost.values import ranked_value_of
from schedc.ir.program import BLOCKS, Compute, Loop, Op, Program, RemoteStart, scalars_set


def simulate_traced(
    program: Program, machine: Machine, inputs: Inputs | None = None, load: Load = DEFAULT_LOAD
) -> Timeline:
    """As `simulate`, with `Timeline.trace`."""
    device = TracedDevice(program, machine, inputs_of(program, inputs, load))
    timeline = device.run()
    return replace(timeline, trace=device.trace())


@dataclass
class TracedDevice(Device):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.executed: list[Executed] = []
        self.entered: list[tuple[float, str]] = []
        self.flight: Flight | None = None
        """What the operation that is executed has started."""
        self.cause: Flight | None = None
        """What it has waited for."""
        self.arrived: dict[tuple[int, int], Flight] = {}
        """The last transfer of the HBM that raised an element of a semaphore, by the element."""
        self.coming: dict[tuple[int, int], list[Flight]] = {}
        """What other devices raise it by."""
        self.touches = Touches(self.program, self.scalar_index)
        self.control: tuple[str, ...] = ()
        """Local scalar arrays that the guards and loops around what is made a closure read."""
        self.outer: str | None = None
        """The counter of the outermost loop around it."""
        self.hbm = _TracedHbm(self)
        self.links = _TracedLinks(self)

    def trace(self) -> Trace:
        """Of what has run."""
        return Trace(tuple(self.executed), tuple(self.entered))

    def _enter(self, phase: PhaseTime) -> PhaseTime:
        self.entered.append((self.now, phase.name))
        return super()._enter(phase)

    def _compile(self, op: Op, scope: dict[str, int], phase: PhaseTime) -> Run:
        number, control, outer = self.compiled, self.control, self.outer
        needs = tuple(dict.fromkeys((*control, *self.touches.needs(op))))
        if not isinstance(op, BLOCKS):
            return self._recorded(super()._compile(op, scope, phase), op, needs, scope, phase, number)
        self.control = needs
        if isinstance(op, Loop) and not op.unroll and outer is None:
            self.outer = op.counter
        run = super()._compile(op, scope, phase)
        self.control, self.outer = control, outer
        return run

    def _recorded(
        self, run: Run, op: Op, needs: tuple[str, ...], scope: dict[str, int], phase: PhaseTime, number: int
    ) -> Run:
        counters, scalars, outer = self.counters, self.scalars, self.outer
        reads, writes = self.touches.accesses(op, scope)
        sets, name, of = scalars_set(op), self.touches.name(op), self.touches.chosen(op, scope)
        peer = ranked_value_of(op.peer, scope, self.scalar_index) if isinstance(op, RemoteStart) else None
        computes = isinstance(op, Compute)
        ranks, at = range(self.program.devices), None if outer is None else scope[outer]

        def recorded() -> None:
            began, sender = self.now, 0
            self.flight = self.cause = None
            run()
            if peer is not None:
                there = peer(counters, scalars, 0)
                sender = next((rank for rank in (there, *ranks) if peer(counters, scalars, rank) == 0), there)
            if self.flight is not None:
                self.flight.name = name if of is None else name + of(counters, scalars)
                self.flight.peer = -1 if peer is None else sender
            self.executed.append(
                Executed(
                    number,
                    name,
                    phase.name,
                    began,
                    self.now,
                    tuple(access(counters, scalars, 0) for access in reads),
                    tuple(access(counters, scalars, sender) for access in writes),
                    needs,
                    sets,
                    self.flight,
                    self.cause,
                    None if outer is None or at is None else (outer, counters[at]),
                    computes,
                )
            )

        return recorded

    def _block(self, counts: list[int], at: int, amount: int, name: str, phase: PhaseTime, number: int) -> None:
        super()._block(counts, at, amount, name, phase, number)
        key, until = (id(counts), at), self.now
        coming = self.coming.get(key, [])
        self.cause = next((flight for flight in coming if flight.ended == until), self.arrived.get(key))
        self.coming[key] = [flight for flight in coming if flight.ended > until]

    def _stall_until(self, time: float, what: str, phase: PhaseTime, number: int) -> None:
        if what == "barrier":
            late = self.machine.skew_ns
            place, latency = len(self.executed), max(0.0, time - self.now - late)
            self.cause = Flight("barrier", what, phase.name, place, self.now, latency, 0.0, self.now, time, late)
        super()._stall_until(time, what, phase, number)


class _TracedHbm(Hbm):
    def __init__(self, device: TracedDevice) -> None:
        super().__init__(device.machine.in_flight, self._ended)
        self.device = device
        self.flights: dict[int, Flight] = {}

    def submit(self, transfer: Transfer, latency: float) -> None:
        device = self.device
        flight = Flight("hbm", "", transfer.names[1], len(device.executed), transfer.issued, latency, transfer.need_ns)
        device.flight = self.flights[id(transfer)] = flight
        super().submit(transfer, latency)

    def _ended(self, transfer: Transfer, time: float) -> None:
        flight = self.flights.pop(id(transfer))
        flight.began, flight.ended = transfer.began, time
        self.device.arrived[id(transfer.counts), transfer.semaphore] = flight


class _TracedLinks(Links):
    def __init__(self, device: TracedDevice) -> None:
        super().__init__(device.machine.network)
        self.device = device
        self.message = (0.0, 0.0, 0.0, 0.0)
        """(issued, alone, left, there) of the last one that was sent"""

    def send(self, route: Route, size: int, now: float) -> tuple[float, float]:
        left, there = super().send(route, size, now)
        self.message = now, self.duration(route, size), left, there
        return left, there

    def deliver(self, time: float, counts: list[int], index: int, amount: int) -> None:
        device, (issued, alone, left, there) = self.device, self.message
        here = time == left < there
        """Only what has left here, and is awaited as such."""
        flight = Flight("link" if alone else "signal", "", device.current.name, len(device.executed), issued, 0.0)
        flight.alone, flight.began, flight.ended = alone, left - alone, time
        if not here:
            flight.latency, flight.late = there - left, time - there
        device.flight = flight
        device.coming.setdefault((id(counts), index), []).append(flight)
        super().deliver(time, counts, index, amount)
