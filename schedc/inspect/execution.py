"""What device 0 executes in a simulated step, operation after operation: the storage it touches, the semaphores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.simulate import Device, Run, inputs_of
from schedc.cost.timeline import PhaseTime, Timeline
from schedc.cost.trace import Span, Touches
from schedc.cost.values import value_of
from schedc.ir.program import (
    BLOCKS,
    Await,
    Op,
    Program,
    RemoteStart,
    SemaphoreRef,
    Signal,
    Start,
    Wait,
    scalars_set,
)


class Executed(NamedTuple):
    """An operation that was executed. `op` counts in the order of `program.walk`."""

    op: int
    phase: str
    began_ns: float
    ended_ns: float
    iteration: tuple[tuple[str, int], ...]
    """Counters of the loops around it, outermost first."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    """Rows of arrays and pools; not those that a message writes on another device."""
    signals: str = ""
    """The semaphore that it gives to or takes from, as in `arrived[3]`."""
    amount: int = 0
    sent: str = ""
    """Of a transfer to another device, the semaphore that says that it has left."""
    needs: tuple[str, ...] = ()
    """Scalar arrays, set in the program, on which it depends what it touches and whether it is executed."""
    sets: tuple[str, ...] = ()
    stall_ns: float = 0.0
    """How long the core was blocked in it."""


def execute(program: Program, machine: Machine, inputs: Inputs | None = None) -> tuple[Timeline, list[Executed]]:
    """Simulate a step, with its events, and keep all leaf operations in the order of execution."""
    device = _Recording(program, machine, inputs_of(program, inputs), keep_events=True)
    return device.run(), device.executed


@dataclass
class _Recording(Device):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.executed: list[Executed] = []
        self.touches = Touches(self.program, self.scalar_index)
        self.single = {semaphore.name for semaphore in self.program.semaphores if semaphore.count == 1}
        self.control: tuple[str, ...] = ()
        """Scalar arrays that the guards and loops around what is made a closure read."""

    def _compile(self, op: Op, scope: dict[str, int], phase: PhaseTime) -> Run:
        number, control = self.compiled, self.control
        needs = tuple(dict.fromkeys((*control, *self.touches.needs(op))))
        if not isinstance(op, BLOCKS):
            return self._recorded(super()._compile(op, scope, phase), op, needs, scope, phase, number)
        self.control = needs
        run = super()._compile(op, scope, phase)
        self.control = control
        return run

    def _recorded(
        self, run: Run, op: Op, needs: tuple[str, ...], scope: dict[str, int], phase: PhaseTime, number: int
    ) -> Run:
        counters, scalars, executed = self.counters, self.scalars, self.executed
        reads, writes = self.touches.accesses(op, scope)
        if isinstance(op, RemoteStart):
            writes = ()
        around, sets, name = tuple(scope.items()), scalars_set(op), phase.name if phase is not self.outside else ""
        signals, sent, amount = self._semaphores(op, scope)

        def recorded() -> None:
            began, stalled = self.now, phase.stall_ns
            run()
            executed.append(
                Executed(
                    number,
                    name,
                    began,
                    self.now,
                    tuple([(counter, counters[at]) for counter, at in around]),
                    tuple([access(counters, scalars, 0) for access in reads]),
                    tuple([access(counters, scalars, 0) for access in writes]),
                    signals(),
                    amount,
                    sent(),
                    needs,
                    sets,
                    phase.stall_ns - stalled,
                )
            )

        return recorded

    def _semaphores(self, op: Op, scope: dict[str, int]) -> tuple[Callable[[], str], Callable[[], str], int]:
        """What it signals or awaits, what says that it has left, and how much."""
        match op:
            case Start(source, _, ref):
                return self._element(ref, scope), _nothing, source.rows
            case RemoteStart(source, _, _, sent, arrived):
                return self._element(arrived, scope), self._element(sent, scope), source.rows
            case Wait(ref, amount) | Await(ref, amount) | Signal(ref, amount):
                return self._element(ref, scope), _nothing, amount
            case _:
                return _nothing, _nothing, 0

    def _element(self, ref: SemaphoreRef, scope: dict[str, int]) -> Callable[[], str]:
        name, counters, scalars = ref.name, self.counters, self.scalars
        if name in self.single:
            return lambda: name
        index = value_of(ref.index, scope, self.scalar_index)
        return lambda: f"{name}[{index(counters, scalars)}]"


def _nothing() -> str:
    return ""
