"""The prediction for one program, as `report.json` holds it. Times in µs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from schedc.cost.bounds import Bounds, bounds
from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import inputs_of, simulate
from schedc.cost.timeline import PhaseTime, Timeline
from schedc.ir.program import Program
from schedc.target.target import Target


@dataclass(frozen=True)
class PhaseReport:
    """A phase over all its executions. `bytes`: what its waits take; `transfers`: started in it, for any phase."""

    name: str
    executions: int
    bytes: int
    transfers: int
    cycles: int
    time_us: float
    stall_us: float
    hbm_idle_us: float
    """HBM without work while the core was in this phase: transfers on their way and nothing asked for, together."""
    hbm_unasked_us: float
    """The part with nothing asked for: an earlier start would use it."""


@dataclass(frozen=True)
class BoundReport:
    """A lower bound, and the step as a multiple of it (None for a bound of 0)."""

    time_us: float
    step_over_bound: float | None


@dataclass(frozen=True)
class CostReport:
    """`step_us` is the kernel alone; the call adds `dispatch_us`."""

    step_us: float
    dispatch_us: float
    clock_mhz: float
    position: tuple[int, ...]
    active_rows: int
    bounds: Mapping[str, BoundReport]
    binding: str
    """The largest bound."""
    hbm_bytes_read: int
    hbm_bytes_written: int
    bytes_sent: int
    """To other devices."""
    transfers: int
    hbm_busy_fraction: float
    hbm_idle_us: float
    compute_us: float
    issue_us: float
    stall_us: float
    phases: tuple[PhaseReport, ...]
    priced_by: str
    """Who gave the cycles of operations."""
    notes: tuple[str, ...]
    """What the prediction leaves out or does not know."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def predict(
    program: Program,
    target: Target,
    inputs: Inputs | None = None,
    machine: Machine | None = None,
    load: Load = DEFAULT_LOAD,
) -> CostReport:
    """Simulate one step and compare it with its bounds; `inputs` in place of what `load` lets expect."""
    machine = machine or Machine.of(target)
    timeline = simulate(program, machine, inputs, load=load)
    given = inputs_of(program, inputs, load)
    return report(timeline, bounds(program, machine, timeline, given), machine, target, given)


def report(timeline: Timeline, least: Bounds, machine: Machine, target: Target, inputs: Inputs) -> CostReport:
    distances = least.distances(timeline.step_ns)
    times = {"hbm": least.hbm_ns, "compute": least.compute_ns, "latency": least.latency_ns}
    return CostReport(
        step_us=us(timeline.step_ns),
        dispatch_us=target.cost.dispatch_us,
        clock_mhz=round(machine.clock_ghz * 1000.0, 3),
        position=tuple(round(value) for value in inputs.get("position", ())),
        active_rows=sum(1 for value in inputs.get("active", ()) if value),
        bounds={name: BoundReport(us(time), rounded(distances[name])) for name, time in times.items()},
        binding=least.largest[0],
        hbm_bytes_read=sum(timeline.read.values()),
        hbm_bytes_written=sum(timeline.written.values()),
        bytes_sent=timeline.sent,
        transfers=timeline.transfers,
        hbm_busy_fraction=round(timeline.hbm_busy_fraction, 4),
        hbm_idle_us=us(timeline.step_ns - timeline.hbm_busy_ns),
        compute_us=us(sum(phase.compute_cycles for phase in timeline.phases) / machine.clock_ghz),
        issue_us=us(sum(phase.issue_cycles for phase in timeline.phases) / machine.clock_ghz),
        stall_us=us(timeline.stall_ns),
        phases=tuple(phase_report(phase) for phase in timeline.phases),
        priced_by=timeline.priced_by,
        notes=timeline.notes,
    )


def phase_report(phase: PhaseTime) -> PhaseReport:
    return PhaseReport(
        name=phase.name,
        executions=phase.executions,
        bytes=phase.bytes_awaited,
        transfers=phase.transfers,
        cycles=round(phase.cycles),
        time_us=us(phase.time_ns),
        stall_us=us(phase.stall_ns),
        hbm_idle_us=us(phase.hbm_idle_ns),
        hbm_unasked_us=us(phase.hbm_unasked_ns),
    )


def us(ns: float) -> float:
    """µs, to the ns."""
    return round(ns / 1000.0, 3)


def rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)
