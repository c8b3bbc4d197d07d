"""One step of the search: anneal the ordering of a plan, and see that the result can be built and fits.

A function of its task alone, so that tasks may run anywhere and in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

from schedc.errors import SchedcError
from schedc.explore.fast.ordering import Ordering, ordering_of, plan_of
from schedc.explore.setting import Prepared, Setting, prepared, rows_needed
from schedc.schedule.plan import Plan, Ring

HOT, COLD = 1e-3, 1e-5
"""Temperatures at the beginning and the end, as shares of the step."""

ATTEMPTS = 3
"""With less VMEM for rings each time, if what was found does not fit."""


@dataclass(frozen=True)
class Task:
    """`steps` changes of the ordering of a plan (0: only evaluate it), from random numbers of `seed`."""

    setting: Setting
    plan: Plan
    seed: int
    steps: int


@dataclass(frozen=True)
class Outcome:
    """`step_ns` by the fast simulation; inf with a `reason` if there is nothing that can be built and fits."""

    plan: Plan
    step_ns: float
    simulated: int = 0
    reason: str = ""


def improve(task: Task) -> Outcome:
    ready = prepared(task.setting)
    try:
        return _improve(ready, task)
    except SchedcError as error:
        return Outcome(task.plan, inf, 0, str(error).partition("\n")[0])


def _improve(ready: Prepared, task: Task) -> Outcome:
    plan, capacity = task.plan, ready.problem.capacity_rows
    faults = ready.faults(plan)
    if faults and (plan.order or plan.deferred):
        plan = replace(plan, order={}, deferred={}, issue={})
        faults = ready.faults(plan)
    if faults:
        return Outcome(plan, inf, 0, faults[0])
    needed = rows_needed(ready.program(plan))
    for _ in range(ATTEMPTS):
        if needed <= capacity:
            break
        plan = shrunk(ready, plan, needed - capacity)
        needed = rows_needed(ready.program(plan))
    if needed > capacity or ready.faults(plan):
        return Outcome(plan, inf, 0, f"needs {needed:,} of {capacity:,} rows of VMEM")
    room, simulated = capacity - needed + ring_rows(ready, plan), 0
    best = _annealed(ready, plan, replace(task, steps=0), room)
    for _ in range(ATTEMPTS if task.steps else 0):
        found = _annealed(ready, plan, task, room)
        simulated += found.simulated
        if found.step_ns >= best.step_ns:
            break
        needed = rows_needed(ready.program(found.plan)) if not ready.faults(found.plan) else capacity + capacity // 50
        if needed <= capacity:
            return replace(found, simulated=simulated)
        room -= needed - capacity
    return replace(best, simulated=simulated + best.simulated)


def _annealed(ready: Prepared, plan: Plan, task: Task, room: int) -> Outcome:
    from schedc.explore.fast.anneal import anneal
    from schedc.explore.search.freedom import freedom_of

    model, problem = ready.model(plan), ready.problem.at(plan)
    freedom = freedom_of(model, problem, plan)
    start = ordering_of(model, problem, plan)
    now = Ordering(*(array.copy() for array in start.all()))
    semaphores = task.setting.target.capability.semaphores - model.arrays.semaphores
    given: list[Any] = [*model.numbers(), freedom, *now.all(), *model.room()]
    given += [task.seed, task.steps, HOT, COLD, room, semaphores]
    time, simulated = anneal(*given)
    return Outcome(plan_of(model, problem, plan, now), time, simulated)


def ring_rows(ready: Prepared, plan: Plan) -> int:
    """Rows of VMEM of all rings."""
    return sum(ring.slots * slot_rows(ready, plan, ring) for ring in plan.rings)


def slot_rows(ready: Prepared, plan: Plan, ring: Ring) -> int:
    unit_rows = {stream.name: stream.unit_rows for stream in ready.problem.streams}
    return max(plan.tile_units[name] * unit_rows[name] for name in ring.streams)


def shrunk(ready: Prepared, plan: Plan, by: int) -> Plan:
    """Fewer slots, the largest ring first, until rings take `by` rows less; as far as they can."""
    rings = list(plan.rings)
    while by > 0:
        sizes = [ring.slots * slot_rows(ready, plan, ring) if ring.slots > 2 else 0 for ring in rings]
        at = sizes.index(max(sizes))
        if not sizes[at]:
            break
        ring = rings[at]
        rings[at] = replace(ring, slots=ring.slots - 1, ahead=min(ring.ahead, ring.slots - 1))
        by -= slot_rows(ready, plan, ring)
    return replace(plan, rings=tuple(rings))
