"""The prediction for one program, as `report.json` holds it. Times in µs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from schedc.cost.bounds import Bounds, bounds
from schedc.cost.critical import critical_path, largest_parts, period, shares
from schedc.cost.idle import CAUSES, idle_times
from schedc.cost.inputs import Inputs, expected_inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import inputs_of, simulate
from schedc.cost.timeline import PhaseTime, Timeline
from schedc.cost.trace import Trace
from schedc.cost.traced import simulate_traced
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
    """A lower bound, the step as a multiple of it (None for a bound of 0), its largest part and the share of that."""

    time_us: float
    step_over_bound: float | None
    largest: str | None = None
    largest_share: float | None = None


@dataclass(frozen=True)
class IdleReport:
    """HBM idle while the core is in a phase, by cause: one of `idle.CAUSES`."""

    phase: str
    cause: str
    time_us: float


@dataclass(frozen=True)
class PathReport:
    """The critical path: µs by cause and by what is on it, and one period of it in words."""

    causes: Mapping[str, float]
    largest: Mapping[str, float]
    period: str | None
    """The outermost loop and its iteration, as `layer = 11`."""
    period_us: float | None
    words: tuple[tuple[str, float], ...]
    """(phases of the core, or what is waited for; µs) in order."""

    @property
    def text(self) -> str:
        """`route 1.0 → transfer of expert_w_up (HBM shared) 2.5 → …`"""
        return " → ".join(f"{what} {time:,.2f}" for what, time in self.words)


@dataclass(frozen=True)
class LoadReport:
    """What the step meets: the law of routing, the device that is looked at, and the experts it is expected to fetch a
    layer, by the scalar that counts them."""

    routing: str
    experts: str
    expected: Mapping[str, float]


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
    idle: tuple[IdleReport, ...]
    """The same idle time by cause, if the step was analysed."""
    idle_causes: Mapping[str, float]
    """µs by cause, over all phases."""
    critical_path: PathReport | None
    load: LoadReport
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
    analyse: bool = True,
) -> CostReport:
    """Simulate one step and compare it with its bounds; `inputs` in place of what `load` lets expect.

    `analyse` looks into the step too: the bounds of dependences, idle times by cause and the critical path, which take
    several times as long as the simulation.
    """
    machine = machine or Machine.of(target)
    given = inputs_of(program, inputs, load)
    timeline = simulate_traced(program, machine, given) if analyse else simulate(program, machine, given)
    expected = {name: given[name][0] for name in expected_inputs(program, load, given.get("active"))}
    return report(timeline, bounds(program, machine, timeline, given), machine, target, given, load, expected)


def report(
    timeline: Timeline,
    least: Bounds,
    machine: Machine,
    target: Target,
    inputs: Inputs,
    load: Load = DEFAULT_LOAD,
    expected: Mapping[str, float] | None = None,
) -> CostReport:
    """`expected` are the scalars of `inputs` that the load says."""
    idle = idle_times(timeline.trace, timeline.step_ns) if timeline.trace else ()
    causes = {cause: us(sum(part.ns for part in idle if part.cause == cause)) for cause in CAUSES}
    return CostReport(
        step_us=us(timeline.step_ns),
        dispatch_us=target.cost.dispatch_us,
        clock_mhz=round(machine.clock_ghz * 1000.0, 3),
        position=tuple(round(value) for value in inputs.get("position", ())),
        active_rows=sum(1 for value in inputs.get("active", ()) if value),
        bounds=bound_reports(least, timeline.step_ns),
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
        idle=tuple(IdleReport(part.phase, part.cause, us(part.ns)) for part in idle),
        idle_causes={cause: time for cause, time in causes.items() if time},
        critical_path=path_report(timeline.trace, timeline.step_ns) if timeline.trace else None,
        load=LoadReport(load.routing.name, load.experts, expected or {}),
        priced_by=timeline.priced_by,
        notes=timeline.notes,
    )


def bound_reports(least: Bounds, step_ns: float) -> dict[str, BoundReport]:
    """By bound, its time, how many times it the step takes, and what has the largest part of it."""
    distances, found = least.distances(step_ns), {}
    for name, ns in least.named.items():
        largest, share = least.parts.get(name, (None, None))
        found[name] = BoundReport(us(ns), rounded(distances[name]), largest, rounded(share))
    return found


def path_report(trace: Trace, step_ns: float) -> PathReport:
    """The critical path by cause and by what is on it, and of a loop over layers one period in words."""
    path = critical_path(trace, step_ns)
    middle = period(path)
    return PathReport(
        causes={cause: us(ns) for cause, ns in shares(path).items()},
        largest={what: us(ns) for what, ns in largest_parts(path).items()},
        period=None if middle is None else middle.name,
        period_us=None if middle is None else us(middle.ns),
        words=() if middle is None else tuple((stretch.what, us(stretch.ns)) for stretch in middle.stretches),
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
