"""What device 0 executes in a simulated step, operation after operation: the storage it touches, the semaphores."""

from __future__ import annotations

from typing import NamedTuple

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.timeline import Timeline
from schedc.cost.trace import Flight, Span
from schedc.inspect.events import by_operation
from schedc.inspect.record import record
from schedc.ir.placed import placed
from schedc.ir.program import BLOCKS, Program, RemoteStart
from schedc.ir.uses import amount


class Executed(NamedTuple):
    """An operation that was executed. `op` counts in the order of `program.walk`. Times in ns."""

    op: int
    phase: str
    began_ns: float
    ended_ns: float
    iteration: tuple[tuple[str, int], ...]
    """Counters of the loops around it, outermost first."""
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    """Rows of arrays and pools; not those that a message writes on another device."""
    signals: str
    """The semaphore that it gives to or takes from, as in `arrived[3]`."""
    amount: int
    sent: str
    """Of a transfer to another device, the semaphore that says that it has left."""
    needs: tuple[str, ...]
    """Scalar arrays, set in the program, on which it depends what it touches and whether it is executed."""
    sets: tuple[str, ...]
    reached_ns: float
    """When the core had issued a wait and looked at its semaphore; of all else `ended_ns`."""
    flight: Flight | None
    """What it started."""

    @property
    def stall_ns(self) -> float:
        """How long the core was blocked in it."""
        return self.ended_ns - self.reached_ns


def execute(program: Program, machine: Machine, inputs: Inputs | None = None) -> tuple[Timeline, list[Executed]]:
    """Simulate a step and put together what was recorded of every leaf operation, in the order of execution."""
    recorded = record(program, machine, inputs)
    places = tuple(placed(program.body))
    single = {f"{semaphore.name}[0]": semaphore.name for semaphore in program.semaphores if semaphore.count == 1}
    waits = by_operation(recorded.timeline.events, ("wait",))
    steps = (step for step in recorded.steps if not isinstance(places[step.op].op, BLOCKS))
    executed = []
    for step, done in zip(steps, recorded.trace.executed, strict=True):
        op, names = places[step.op].op, [single.get(name, name) for name in step.semaphores]
        to_peer = isinstance(op, RemoteStart)
        executed.append(
            Executed(
                op=step.op,
                phase=places[step.op].phase,
                began_ns=step.began,
                ended_ns=step.ended,
                iteration=step.trips,
                reads=done.reads,
                writes=() if to_peer else done.writes,
                signals=names[-1] if names else "",
                amount=amount(op),
                sent=names[0] if to_peer else "",
                needs=done.needs,
                sets=done.sets,
                reached_ns=next(waits[step.op]).began_ns if step.op in waits else step.ended,
                flight=done.flight,
            )
        )
    return recorded.timeline, executed
