"""What a simulated step is: where the time goes, by phase, and event by event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from schedc.cost.trace import Trace

OUTSIDE = "between phases"
"""The phase of what belongs to none, such as the trips of the loop over layers."""


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
    bytes_sent: int = 0
    """To other devices."""
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
    """A computation, a wait or a stall in one on the core, or a transfer (`began`: when it first moved data).

    Every wait has an event, from when the core came to it to when it went on, also one that found what it waits for.
    """

    lane: Literal["core", "wait", "stall", "hbm", "link"]
    name: str
    phase: str
    issued_ns: float
    began_ns: float
    ended_ns: float
    bytes: int = 0
    op: int = -1
    """The operation, in the order of `program.walk`."""


@dataclass(frozen=True)
class Timeline:
    """One step of one device. Transfers are those of its HBM, in both directions.

    `read` and `written` are bytes by HBM array, `sent` bytes to other devices.
    """

    step_ns: float
    phases: tuple[PhaseTime, ...]
    transfers: int
    read: Mapping[str, int]
    written: Mapping[str, int]
    sent: int
    hbm_busy_ns: float
    notes: tuple[str, ...]
    events: tuple[Event, ...]
    priced_by: str = ""
    """Who gave the cycles."""
    trace: Trace | None = None
    """What was executed, if the simulation was asked to keep it."""

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
