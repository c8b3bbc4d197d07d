"""A simulated step, operation by operation: what was executed when, and which rows and semaphores it touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import Run, inputs_of
from schedc.cost.timeline import PhaseTime, Timeline
from schedc.cost.trace import Trace
from schedc.cost.traced import TracedDevice
from schedc.cost.values import value_of
from schedc.ir.program import Op, Program, RemoteStart
from schedc.ir.uses import operands, semaphores

Note = Callable[[], tuple[tuple["Touched", ...], tuple[str, ...], int]]
"""What is touched by the execution that follows: regions, semaphores, the peer."""


@dataclass(frozen=True, slots=True)
class Touched:
    """`rows` rows of a buffer or an HBM array from `row`, which counts from slot 0."""

    storage: str
    row: int
    rows: int
    reads: bool
    writes: bool

    @property
    def end(self) -> int:
        return self.row + self.rows


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of operation `op` of `walk(program.body)`, on the core from `began` to `ended` (ns).

    Of a block such as a phase or a loop, all of it.
    """

    op: int
    began: float
    ended: float
    trips: tuple[tuple[str, int], ...]
    """The counters of the loops around it, outermost first."""
    touched: tuple[Touched, ...] = ()
    semaphores: tuple[str, ...] = ()
    """As `name[index]`: what a wait takes from, what else gives to; of a message `sent`, then `arrived`."""
    peer: int = 0


@dataclass
class Recorder(TracedDevice):
    """A device that takes notes of every operation that it executes, in the order of their ends."""

    steps: list[Step] = field(default_factory=list)

    def _compile(self, op: Op, scope: dict[str, int], phase: PhaseTime) -> Run:
        number = self.compiled
        run = super()._compile(op, scope, phase)
        note, loops, counters = self._note(op, scope), tuple(scope.items()), self.counters

        def recorded() -> None:
            began = self.now
            touched, semaphores, peer = note()
            run()
            trips = tuple((name, counters[index]) for name, index in loops)
            self.steps.append(Step(number, began, self.now, trips, touched, semaphores, peer))

        return recorded

    def _note(self, op: Op, scope: dict[str, int]) -> Note:
        strides = {buffer.name: buffer.rows for buffer in self.program.buffers}
        touching = [
            (
                operand.region.storage,
                strides.get(operand.region.storage, 0),
                value_of(operand.region.slot, scope, self.scalar_index),
                value_of(operand.region.offset, scope, self.scalar_index),
                operand.region.rows,
                operand.reads,
                operand.writes,
            )
            for operand in operands(op)
        ]
        signals = [(ref.name, value_of(ref.index, scope, self.scalar_index)) for ref in semaphores(op)]
        peer = value_of(op.peer, scope, self.scalar_index) if isinstance(op, RemoteStart) else None
        counters, scalars = self.counters, self.scalars

        def note() -> tuple[tuple[Touched, ...], tuple[str, ...], int]:
            touched = tuple(
                Touched(name, stride * slot(counters, scalars) + offset(counters, scalars), rows, reads, writes)
                for name, stride, slot, offset, rows, reads, writes in touching
            )
            signalled = tuple(f"{name}[{index(counters, scalars)}]" for name, index in signals)
            return touched, signalled, 0 if peer is None else peer(counters, scalars)

        return note


@dataclass(frozen=True)
class Recorded:
    """`steps` are all executions in the order of their ends, blocks too; `trace` has those of no block."""

    timeline: Timeline
    steps: tuple[Step, ...]
    trace: Trace


def record(program: Program, machine: Machine, inputs: Inputs | None = None, load: Load = DEFAULT_LOAD) -> Recorded:
    """`simulate` with its events but for those of the HBM, which are in the trace, and every execution."""
    device = Recorder(program, machine, inputs_of(program, inputs, load), keep_events=True)
    timeline = device.run()
    return Recorded(timeline, tuple(device.steps), device.trace())
