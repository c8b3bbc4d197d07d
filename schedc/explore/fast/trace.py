"""What one device does, as a list of what matters to its clock: core time, starts, waits, messages.

    phase up {                                       after_ns  kind
      wait arrived[1] rows=128                →           3.3  WAIT   arrived[1] 128
      compute matmul(…)
      start w[…] -> slot<1> signals arrived   →         640.5  START  arrived[1] 128 rows, needs 64 ns of the HBM
    }

Loops are run through, guards decided, scalars evaluated, exactly as `schedc/cost/simulate.py` does: the recorder is its
device, with an HBM, links and waits that only take notes. A step of Kimi K3 on 32 devices makes some 60,000 of them,
most of which are messages of the same burst, which `bursts.py` makes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schedc.cost.hbm import Hbm, Transfer
from schedc.cost.inputs import Inputs
from schedc.cost.links import Links, Parts, Route
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import Device, inputs_of
from schedc.cost.timeline import PhaseTime
from schedc.ir.program import Program

START, WAIT, SEND, BURST, MARK = range(5)

_LEFT, _THERE = -1.0, -2.0
"""What the links of a recorder say for the times of a message."""


@dataclass(frozen=True, slots=True)
class Note:
    """`after_ns` of core time, then what `kind` says.

    START: `amount` rows for `semaphore`, `latency_ns` later, for which the HBM is needed `need_ns`. WAIT: take `amount`
    of `semaphore`. SEND: `route` is taken `need_ns`, or all of `parts` are (lane, ns); then `other` gets `amount` (-1:
    nothing does), and `latency_ns` later `semaphore`. BURST: messages that leave one after the other, of which
    `route` is the number in `Trace.bursts`; `need_ns` is core time. MARK: note the time as number `other`.
    """

    kind: int
    after_ns: float
    semaphore: int = -1
    amount: int = 0
    need_ns: float = 0.0
    latency_ns: float = 0.0
    other: int = -1
    route: int = -1
    parts: Parts = ()


class Recorder(Device):
    """A device whose core runs through without ever waiting, and notes what it would do."""

    def __init__(
        self, program: Program, machine: Machine, inputs: Inputs | None = None, load: Load = DEFAULT_LOAD
    ) -> None:
        super().__init__(program, machine, inputs_of(program, inputs, load), False)
        self.taken: list[Note] = []
        self.noted_ns = 0.0
        self.base: dict[str, int] = {}
        for semaphore in program.semaphores:
            self.base[semaphore.name] = sum(s.count for s in program.semaphores[: len(self.base)])
        self.base_of = {id(self.counts[name]): base for name, base in self.base.items()}
        self.hbm = _Started(self)
        self.links = _Sent(self)

    def note(self, kind: int, **what: Any) -> None:
        after, self.noted_ns = self.now - self.noted_ns, self.now
        self.taken.append(Note(kind, after, **what))

    def take(self) -> tuple[list[Note], float]:
        """The notes since the last call, and the core time after the last of them, in ns."""
        notes, rest = self.taken, self.now - self.noted_ns
        self.taken, self.noted_ns = [], self.now
        return notes, rest

    def _enter(self, phase: PhaseTime) -> PhaseTime:
        left, self.current = self.current, phase
        return left

    def _block(self, counts: list[int], at: int, amount: int, *_: Any) -> None:
        """A wait that finds too little: always, since nothing ever arrives here but this core's own signals."""
        self.note(WAIT, semaphore=self.base_of[id(counts)] + at, amount=amount)


class _Started(Hbm):
    """Notes transfers in place of making them."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.machine.in_flight)
        self.recorder = recorder

    def submit(self, transfer: Transfer, latency: float) -> None:
        at = self.recorder.base_of[id(transfer.counts)] + transfer.semaphore
        self.recorder.note(START, semaphore=at, amount=transfer.rows, need_ns=transfer.need_ns, latency_ns=latency)


class _Sent(Links):
    """Notes messages in place of sending them."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.machine.network)
        self.recorder = recorder
        self.message: tuple[Parts, float] = ((), 0.0)
        self.sent = -1

    def send(self, route: Route, size: int, now: float) -> tuple[float, float]:
        self.message = self.parts(route, size), self.latency(route)
        return _LEFT, _THERE

    def deliver(self, time: float, counts: list[int], index: int, amount: int) -> None:
        at = self.recorder.base_of[id(counts)] + index
        if time == _LEFT:
            self.sent = at
            return
        parts, latency = self.message
        latency += self.recorder.machine.skew_ns
        (route, need), *more = parts
        self.recorder.note(
            SEND, semaphore=at, amount=amount, need_ns=need, latency_ns=latency, other=self.sent, route=route,
            parts=parts if more else (),
        )  # fmt: skip
        self.sent = -1


@dataclass(frozen=True)
class Recorded:
    """Everything a program does, and the core time after the last note."""

    notes: tuple[Note, ...]
    rest_ns: float
    semaphores: int


def record(program: Program, machine: Machine, inputs: Inputs | None = None) -> Recorded:
    """What the device does in one step of `program`."""
    recorder = Recorder(program, machine, inputs)
    for step in recorder.closures(program.body, {}, recorder.outside):
        step()
    notes, rest = recorder.take()
    return Recorded(tuple(notes), rest, sum(s.count for s in program.semaphores))
