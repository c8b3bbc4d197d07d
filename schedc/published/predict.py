"""What a published schedule takes under the same timeline as ours; its computations by their measured cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from schedc.cost.bounds import bounds
from schedc.cost.machine import Machine
from schedc.cost.operations import CycleTable
from schedc.cost.routing import DEFAULT_LOAD, Distinct, Load, distinct_experts
from schedc.cost.simulate import simulate
from schedc.ir.program import ROW_BYTES, Compute, Program
from schedc.published.demand import Demand, require_hbm, require_vmem
from schedc.published.form import MIB, PublishedSchedule
from schedc.published.generate import MEASURED, program_of
from schedc.target.target import Target, parse_target


@dataclass(frozen=True)
class MeasuredTable(CycleTable):
    """A computation takes the cycles that it has as an attribute; starts, waits and sends are among them."""

    def issue(self, kind: str) -> float:
        return 0.0

    def cycles(self, op: Compute) -> tuple[float, str | None]:
        if op.kind != MEASURED:
            return super().cycles(op)
        return float(dict(op.attributes)["cycles"]), None


def machine_of(schedule: PublishedSchedule, of: Callable[[Target], Machine] = Machine.of) -> Machine:
    """The target's, with measured cycles in place of what a profile or the formulas would say."""
    machine = of(parse_target(schedule.target, schedule.devices))
    return replace(machine, table=MeasuredTable.on(machine.table.target), pricing=None)


@dataclass(frozen=True)
class PhasePrediction:
    """A phase over all its executions. `exchange_us`: of its stalls what it waits for other devices."""

    name: str
    executions: float
    cycles: float
    time_us: float
    stall_us: float
    exchange_us: float
    hbm_idle_us: float


@dataclass(frozen=True)
class Prediction:
    """Times in µs, of the device that has most of the chosen experts in every layer, in expectation."""

    schedule: str
    step: str
    context: int
    position: int
    clock_mhz: float
    step_us: float
    even_us: float
    """If every device had its mean of experts: what imbalance costs is the difference."""
    experts: float
    """Different ones of the device that has most, a layer."""
    experts_mean: float
    cycles: float
    compute_us: float
    stall_us: float
    exchange_us: float
    """Blocked in waits for other devices."""
    transfer_us: float
    """Blocked in waits for the HBM."""
    hbm_mib: float
    hbm_busy_fraction: float
    hbm_idle_us: float
    bounds: Mapping[str, float]
    vmem_mib: float
    """Of regions and boxes, without what the compiler adds."""
    phases: tuple[PhasePrediction, ...]

    @property
    def largest_bound(self) -> tuple[str, float]:
        return max(self.bounds.items(), key=lambda item: item[1])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def experts_of(schedule: PublishedSchedule, demand: Demand, load: Load = DEFAULT_LOAD) -> Distinct:
    """How many different experts a device has to go through in a layer."""
    experts = schedule.experts
    return distinct_experts(load, experts.of, experts.top_k, demand.rows, experts.members)


def program_for(schedule: PublishedSchedule, demand: Demand) -> Program:
    """With the experts' transfers where the load of the slowest device, uniformly routed, would have them."""
    return program_of(schedule, demand, round(experts_of(schedule, demand).slowest))


def predict_published(
    schedule: PublishedSchedule, demand: Demand, machine: Machine | None = None, load: Load = DEFAULT_LOAD
) -> Prediction:
    """Raises UserError for what the published placement cannot hold."""
    target = parse_target(schedule.target, schedule.devices)
    require_hbm(schedule, demand, target)
    machine = machine or machine_of(schedule)
    program = program_for(schedule, demand)
    require_vmem(program, target)
    experts = experts_of(schedule, demand, load)
    found = _one(schedule, program, machine, experts.of(load.experts))
    return Prediction(
        schedule=schedule.name,
        step=demand.name,
        context=demand.context,
        position=demand.position,
        clock_mhz=round(machine.clock_ghz * 1000.0, 3),
        even_us=_rounded(simulate(program, machine, {"count": [experts.mean]}).step_ns / 1e3),
        experts=_rounded(experts.slowest),
        experts_mean=_rounded(experts.mean),
        bounds={name: _rounded(found[f"bound {name}"]) for name in ("hbm", "compute", "latency")},
        vmem_mib=_rounded(sum(pool.rows for pool in program.pools) * ROW_BYTES / MIB),
        phases=tuple(_phases(found)),
        **{name: _rounded(found[name]) for name in _TOTALS},
    )


_TOTALS = (
    "step_us", "cycles", "compute_us", "stall_us", "exchange_us", "transfer_us", "hbm_mib", "hbm_busy_fraction",
    "hbm_idle_us",
)  # fmt: skip
_OF_PHASE = ("executions", "cycles", "time_us", "stall_us", "exchange_us", "hbm_idle_us")


def _one(schedule: PublishedSchedule, program: Program, machine: Machine, experts: float) -> dict[str, float]:
    """One step in which the device has so many experts a layer, as numbers by name."""
    inputs = {"count": [experts]}
    timeline = simulate(program, machine, inputs, events=True)
    least = bounds(program, machine, timeline, inputs)
    waited: dict[str, float] = {}
    for event in timeline.events:
        if event.lane == "stall" and event.name.partition(".")[0] in (*schedule.exchanges, "barrier"):
            waited[event.phase] = waited.get(event.phase, 0.0) + event.ended_ns - event.began_ns
    found = {
        "step_us": timeline.step_ns / 1e3,
        "cycles": timeline.cycles,
        "compute_us": timeline.cycles / machine.clock_ghz / 1e3,
        "stall_us": timeline.stall_ns / 1e3,
        "exchange_us": sum(waited.values()) / 1e3,
        "transfer_us": (timeline.stall_ns - sum(waited.values())) / 1e3,
        "hbm_mib": timeline.hbm_bytes / MIB,
        "hbm_busy_fraction": timeline.hbm_busy_fraction,
        "hbm_idle_us": (timeline.step_ns - timeline.hbm_busy_ns) / 1e3,
        "bound hbm": least.hbm_ns / 1e3,
        "bound compute": least.compute_ns / 1e3,
        "bound latency": least.latency_ns / 1e3,
    }
    for phase in timeline.phases:
        times = (phase.time_ns, phase.stall_ns, waited.get(phase.name, 0.0), phase.hbm_idle_ns)
        values = (phase.executions, phase.cycles, *(time / 1e3 for time in times))
        found |= {f"{phase.name}|{name}": float(value) for name, value in zip(_OF_PHASE, values, strict=True)}
    return found


def _phases(found: Mapping[str, float]) -> Iterator[PhasePrediction]:
    for name in dict.fromkeys(key.partition("|")[0] for key in found if "|" in key):
        yield PhasePrediction(name, *(_rounded(found[f"{name}|{figure}"]) for figure in _OF_PHASE))


def _rounded(value: float) -> float:
    return round(value, 4)
