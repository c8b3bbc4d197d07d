"""From a solved period to a plan, scored by the simulation as every other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from schedc.explore.exact import Solved, solve
from schedc.explore.fast.ordering import ordering_of, plan_of
from schedc.explore.period import main_segment, period_of
from schedc.explore.search.freedom import freedom_of
from schedc.explore.search.improve import Task, improve, ring_rows
from schedc.explore.setting import Prepared, rows_needed
from schedc.schedule.plan import Plan

SLACK = (0, 1, 2)
"""Slots beyond those that the solver uses: a ring starts a tile only when one has been used."""

POLISH = 10_000
"""Changes that annealing tries from the solver's schedule on."""


@dataclass(frozen=True)
class Optimum:
    plan: Plan
    step_ns: float
    solved: Solved


def optimum(ready: Prepared, plan: Plan, seconds: float, seed: int = 0) -> Optimum | None:
    """The best schedule at the grain of `plan` by the full simulation; None if none was found in the time.

    Raises UserError for a model with chosen experts, and without ortools.
    """
    problem, model = ready.problem.at(plan), ready.model(plan)
    freedom = freedom_of(model, problem, plan)
    start = ordering_of(model, problem, plan)
    rows = ready.problem.capacity_rows - rows_needed(ready.program(plan)) + ring_rows(ready, plan)
    edges = [(int(a), int(b)) for a, b in freedom.edges]
    solved = solve(period_of(model), edges, [int(r) for r in start.ring_of], rows, seconds, seed)
    if solved is None:
        return None
    first = int(model.arrays.unit_first[main_segment(model)])
    best: Optimum | None = None
    for slack in SLACK:
        for in_order in (True, False):
            order, issue, slots, ahead = (
                array.copy() for array in (start.order, start.issue, start.slots, start.ahead)
            )
            if in_order:
                order[first : first + len(solved.order)] = solved.order
                for number, unit in solved.issue.items():
                    issue[number] = unit
            for ring, live in solved.live.items():
                slots[ring] = ahead[ring] = max(2, min(64, live + slack))
            made = plan_of(model, problem, plan, replace(start, order=order, issue=issue, slots=slots, ahead=ahead))
            time = ready.step_ns(made)
            if time < (best.step_ns if best else inf):
                best = Optimum(made, time, solved)
    return _polished(ready, best, seed) if best else None


def _polished(ready: Prepared, found: Optimum, seed: int) -> Optimum:
    """With what the solver's machine does not have settled: what is outside the loop, when a ring can start what."""
    outcome = improve(Task(ready.setting, found.plan, seed, POLISH))
    time = ready.step_ns(outcome.plan)
    return replace(found, plan=outcome.plan, step_ns=time) if time < found.step_ns else found
