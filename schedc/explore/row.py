"""What is said of a plan beside others: its time, its distance to the bounds, what it takes and what it leaves idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from schedc.cost.bounds import bounds
from schedc.cost.simulate import Stuck, inputs_of, simulate
from schedc.cost.timeline import Timeline
from schedc.cost.traced import simulate_traced
from schedc.errors import SchedcError
from schedc.explore.setting import Prepared, rows_needed
from schedc.ir.program import ROW_BYTES, Program, walk
from schedc.ir.uses import is_remote, semaphores
from schedc.schedule.plan import Plan


@dataclass(frozen=True)
class Row:
    """Times in µs. `exposed_us`: of what the core waits, for other devices. `reason`: why there are no numbers."""

    name: str
    step_us: float | None = None
    bounds_us: Mapping[str, float] | None = None
    vmem_mib: float | None = None
    hbm_idle_us: float | None = None
    exposed_us: float | None = None
    waits_us: float | None = None
    reason: str = ""

    @property
    def bound(self) -> tuple[str, float] | None:
        """The largest, and the step as a multiple of it."""
        if not self.bounds_us or self.step_us is None:
            return None
        name, time = max(self.bounds_us.items(), key=lambda item: item[1])
        return name, self.step_us / time

    def to_dict(self) -> dict[str, Any]:
        bound = self.bound
        return {**asdict(self), "binding": bound and bound[0], "step_over_bound": bound and round(bound[1], 4)}


def row(name: str, ready: Prepared, plan: Plan) -> Row:
    """By the full simulation; a plan that cannot be built, does not fit or waits for ever has its reason."""
    faults = ready.faults(plan)
    if faults:
        return Row(name, reason=faults[0])
    try:
        program = ready.program(plan)
        needed, capacity = rows_needed(program), ready.problem.capacity_rows
        if needed > capacity:
            return Row(name, reason=f"takes {_mib(needed):.1f} MiB of VMEM, there are {_mib(capacity):.1f}")
        given = inputs_of(program, None, ready.setting.load)
        timeline = simulate(program, ready.setting.machine, given, events=True)
    except (SchedcError, Stuck) as error:
        return Row(name, reason=str(error).partition("\n")[0])
    least = bounds(program, ready.setting.machine, simulate_traced(program, ready.setting.machine, given), given)
    return Row(
        name,
        step_us=_us(timeline.step_ns),
        bounds_us={bound: _us(ns) for bound, ns in least.named.items()},
        vmem_mib=round(_mib(needed), 2),
        hbm_idle_us=_us(timeline.step_ns - timeline.hbm_busy_ns),
        exposed_us=_us(exposed_ns(program, timeline)),
        waits_us=_us(timeline.stall_ns),
    )


def exposed_ns(program: Program, timeline: Timeline) -> float:
    """What the core waits for other devices: for their messages, for its own to leave, at barriers."""
    ours = {"barrier"}
    for op in walk(program.body):
        if is_remote(op):
            ours |= {ref.name for ref in semaphores(op)}
    return sum(
        event.ended_ns - event.began_ns
        for event in timeline.events
        if event.lane == "stall" and event.name.partition("[")[0] in ours
    )


def _us(ns: float) -> float:
    return round(ns / 1000.0, 3)


def _mib(rows: int) -> float:
    return rows * ROW_BYTES / 2**20
