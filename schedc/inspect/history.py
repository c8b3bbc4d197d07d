"""A simulated step put together: transfers from their start over their wait to their use, waits, phases, layers."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.operations import FEATURES, Work
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.timeline import Event, Timeline
from schedc.cost.trace import Executed, Flight, Trace
from schedc.inspect.arrivals import Arrival, Taking, taken
from schedc.inspect.events import by_operation
from schedc.inspect.layers import Span, layers_of
from schedc.inspect.numbered import Numbered
from schedc.inspect.occupancy import Fill, Occupant, occupants
from schedc.inspect.record import Step, Touched, record
from schedc.ir.program import (
    BLOCKS,
    ROW_BYTES,
    Await,
    Barrier,
    Compute,
    Op,
    Phase,
    Program,
    RemoteStart,
    Start,
    Wait,
    walk,
)
from schedc.target.target import Target

Lane = Literal["hbm", "link"]
_PRODUCTS = frozenset({"drain", "tiles"})
"""What of the features of a cost says that the MXU is used: its drain, or tiles of keys and values."""


@dataclass(slots=True)
class Transfer:
    """Steps are indices of `History.steps`; times are in ns. It moves data from `began` to `left`."""

    lane: Lane
    step: int
    op: int
    route: int
    """Of a message: 0 for a device of the same chip, else the number of the other chip."""
    source: Touched
    target: Touched
    semaphore: str
    issued: float
    began: float
    left: float
    """The link is free for the next message; of a transfer of the HBM, `ended`."""
    ended: float
    """All of it is where it should be."""
    wait: int | None = None
    """The wait that took its last row: where the core knows that it has arrived."""
    first_use: int | None = None
    """The first computation that reads what it brought."""
    last_use: int | None = None
    flight: Flight | None = None
    """The same in the trace of the simulation."""

    @property
    def bytes(self) -> int:
        return self.source.rows * ROW_BYTES

    @property
    def name(self) -> str:
        return f"{self.source.storage} -> {self.target.storage}"


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait or a barrier: the core came at `reached` and went on at `ended`."""

    step: int
    reached: float
    ended: float
    semaphore: str
    """Empty for a barrier."""
    took: tuple[int, ...] = ()
    """Transfers whose last rows it took, as indices of `History.transfers`."""

    @property
    def blocked(self) -> bool:
        return self.ended > self.reached


@dataclass(frozen=True)
class History:
    program: Program
    timeline: Timeline
    trace: Trace
    ops: tuple[Op, ...]
    """Every operation of the program, in the order of `program.walk`."""
    phase_of: tuple[str, ...]
    """The innermost phase of every operation, empty outside of phases."""
    steps: tuple[Step, ...]
    """Executions of operations that are no blocks, in the order of the program's execution."""
    transfers: tuple[Transfer, ...]
    waits: tuple[Waited, ...]
    phases: tuple[Span, ...]
    layers: tuple[Span, ...]
    on_mxu: frozenset[int]
    """Computations with products, which the MXU makes."""
    occupants: tuple[Occupant, ...]
    """What transfers brought into VMEM, and until when it was read."""

    @property
    def title(self) -> str:
        return title_of(self.program)


def title_of(program: Program) -> str:
    """The model, or the name of a program that says none, and what it is for."""
    facts = dict(program.attributes)
    named = ", ".join(f"{name} {facts[name]}" for name in ("rows", "context", "policy") if name in facts)
    return f"{facts.get('model', program.name)}{', ' if named else ''}{named}"


def history(program: Program, machine: Machine, inputs: Inputs | None = None, load: Load = DEFAULT_LOAD) -> History:
    """Simulate `program` once and put together what happened. Raises as `simulate` does."""
    recorded = record(program, machine, inputs, load)
    timeline = recorded.timeline
    ops = tuple(walk(program.body))
    steps = tuple(step for step in recorded.steps if not isinstance(ops[step.op], BLOCKS))
    transfers = _transfers(steps, ops, recorded.trace.executed, machine)
    waits = _waits(steps, ops, timeline.events)
    waits = _matched(transfers, waits, ops, steps)
    held = _use(program, transfers, steps, ops)
    blocks = sorted((s for s in recorded.steps if isinstance(ops[s.op], Phase)), key=lambda s: (s.began, -s.ended))
    phases = tuple(Span(_phase_name(ops[s.op]), s.began, s.ended, s.op) for s in blocks)
    layers = layers_of(blocks, ops, program.body)
    return History(
        program=program,
        timeline=timeline,
        trace=recorded.trace,
        ops=ops,
        phase_of=tuple(placed.phase for placed in Numbered(program).ops),
        steps=steps,
        transfers=transfers,
        waits=waits,
        phases=phases,
        layers=layers,
        on_mxu=frozenset(
            n for n, op in enumerate(ops) if isinstance(op, Compute) and _uses_mxu(op, machine.table.target)
        ),
        occupants=held,
    )


def _uses_mxu(op: Compute, target: Target) -> bool:
    """Whether its cost counts products."""
    features = FEATURES.get(op.kind)
    return features is not None and not _PRODUCTS.isdisjoint(features(Work.of(op, target)))


def _use(
    program: Program, transfers: tuple[Transfer, ...], steps: tuple[Step, ...], ops: tuple[Op, ...]
) -> tuple[Occupant, ...]:
    """Say of transfers what reads their data. Where a message from a peer lies is the peer's to say: its slot counts.

    Gives what lies in the buffers that the HBM's transfers fill.
    """
    rows = {buffer.name: buffer.rows for buffer in program.buffers}
    computing = {number for number, op in enumerate(ops) if isinstance(op, Compute)}
    fills = [Fill(index, t.step, t.wait, t.target) for index, t in enumerate(transfers) if t.lane == "hbm"]
    held = occupants(fills, steps, rows, computing)
    for occupant in held:
        transfer = transfers[occupant.transfer]
        transfer.first_use, transfer.last_use = occupant.first_use, occupant.last_use
    reads: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        for touched in step.touched if step.op in computing else ():
            if touched.reads and touched.storage in rows:
                reads[touched.storage, touched.row // rows[touched.storage]].append(number)
    for t in transfers:
        if t.lane == "link" and t.wait is not None and t.target.storage in rows:
            slot = reads[t.target.storage, t.target.row // rows[t.target.storage]]
            at = bisect_right(slot, t.wait)
            t.first_use = t.last_use = slot[at] if at < len(slot) else None
    return held


def _phase_name(op: Op) -> str:
    assert isinstance(op, Phase)
    return op.name


def _transfers(
    steps: tuple[Step, ...], ops: tuple[Op, ...], executed: tuple[Executed, ...], machine: Machine
) -> tuple[Transfer, ...]:
    network = machine.network
    found = []
    for index, (step, done) in enumerate(zip(steps, executed, strict=True)):
        assert step.op == done.number, "both are in the order of execution"
        flight = done.flight
        if not isinstance(ops[step.op], (Start, RemoteStart)) or flight is None:
            continue
        message = isinstance(ops[step.op], RemoteStart)
        route = network.route(0, step.peer).chip
        found.append(
            Transfer(
                lane="link" if message else "hbm",
                step=index,
                op=step.op,
                route=route if message else -1,
                source=step.touched[0],
                target=step.touched[1],
                semaphore=step.semaphores[-1],
                issued=flight.issued,
                began=flight.began,
                left=flight.began + flight.alone if message else flight.ended,
                ended=flight.ended,
                flight=flight,
            )
        )
    return tuple(found)


def _waits(steps: tuple[Step, ...], ops: tuple[Op, ...], events: Sequence[Event]) -> tuple[Waited, ...]:
    times = by_operation(events, ("wait",))
    found = []
    for index, step in enumerate(steps):
        if isinstance(ops[step.op], (Wait, Await, Barrier)):
            event = next(times[step.op])
            semaphore = step.semaphores[0] if step.semaphores else ""
            found.append(Waited(index, event.began_ns, event.ended_ns, semaphore))
    return tuple(found)


def _matched(
    transfers: tuple[Transfer, ...], waits: tuple[Waited, ...], ops: tuple[Op, ...], steps: tuple[Step, ...]
) -> tuple[Waited, ...]:
    """Waits with what they took; says so of transfers too. A message is also waited for where it was sent."""
    arrivals = [Arrival(t.semaphore, t.ended, t.target.rows, index) for index, t in enumerate(transfers)]
    for index, t in enumerate(transfers):
        if t.lane == "link":
            arrivals.append(Arrival(steps[t.step].semaphores[0], t.left, t.target.rows, index))
    takings = []
    for index, wait in enumerate(waits):
        op = ops[steps[wait.step].op]
        if isinstance(op, Wait):
            takings.append(Taking(wait.semaphore, op.rows, index))
    took: dict[int, list[int]] = defaultdict(list)
    for arrival, wait_index in taken(arrivals, takings):
        took[wait_index].append(arrival.transfer)
        if arrival.semaphore == transfers[arrival.transfer].semaphore:
            transfers[arrival.transfer].wait = waits[wait_index].step
    return tuple(replace(wait, took=tuple(took[index])) for index, wait in enumerate(waits))
