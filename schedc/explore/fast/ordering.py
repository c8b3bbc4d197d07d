"""An ordering as numbers: what `compose` takes of a plan, and how long the step of it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedc.explore.fast.model import MOST_SLOTS, Model
from schedc.schedule.plan import Plan, Problem

BEFORE_ALL, OF_CHOSEN = -1, -2
"""Where a ring begins that begins at no unit."""


@dataclass(frozen=True)
class Ordering:
    """The choices of a plan beyond its grain, by the numbers of a model (see `compose.compose`)."""

    order: np.ndarray
    issue: np.ndarray
    deferred: np.ndarray
    ring_of: np.ndarray
    slots: np.ndarray
    ahead: np.ndarray
    begin: np.ndarray

    def all(self) -> tuple[np.ndarray, ...]:
        return self.order, self.issue, self.deferred, self.ring_of, self.slots, self.ahead, self.begin


def ordering_of(model: Model, problem: Problem, plan: Plan) -> Ordering:
    """Of a plan that can be built, at the model's grain."""
    units = {name: index for index, name in enumerate(model.units)}
    graph_order = {segment.name: [phase.name for phase in segment.phases] for segment in model.graph.segments}
    order = [units[name] for segment, own in graph_order.items() for name in _placed(own, plan.order.get(segment))]
    latest = {prefetch.name: prefetch.latest for prefetch in problem.prefetches}
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    ring_of = {name: index for index, ring in enumerate(plan.rings) for name in ring.streams}

    def begin(ring) -> int:
        if chosen.intersection(ring.streams):
            return OF_CHOSEN
        return BEFORE_ALL if ring.begin is None else units[ring.begin]

    too_many = [ring.name for ring in plan.rings if ring.slots > MOST_SLOTS]
    if too_many:
        raise ValueError(f"the fast simulation has rings of up to {MOST_SLOTS} slots; {', '.join(too_many)} has more")
    return Ordering(
        np.array(order, np.int64),
        np.array([units[plan.issue.get(name, latest[name])] for name in model.transfers], np.int64),
        np.array([units[plan.deferred[name]] if name in plan.deferred else -1 for name in model.units], np.int64),
        np.array([ring_of[name] for name in model.streams], np.int64),
        np.array([ring.slots for ring in plan.rings], np.int64),
        np.array([ring.ahead for ring in plan.rings], np.int64),
        np.array([begin(ring) for ring in plan.rings], np.int64),
    )


def plan_of(model: Model, problem: Problem, plan: Plan, ordering: Ordering) -> Plan:
    """`plan` with the choices of an ordering in place of its own."""
    known = {segment.name: segment.order for segment in problem.segments}
    order = {}
    for at, segment in enumerate(model.graph.segments):
        first, last = model.arrays.unit_first[at], model.arrays.unit_first[at + 1]
        placed = [model.units[unit] for unit in ordering.order[first:last]]
        if placed != [phase.name for phase in segment.phases]:
            order[segment.name] = _with_absent(placed, known[segment.name])
    rings = tuple(
        replace(ring, slots=int(slots), ahead=int(ahead), begin=None if begin < 0 else model.units[begin])
        for ring, slots, ahead, begin in zip(plan.rings, ordering.slots, ordering.ahead, ordering.begin, strict=True)
    )
    latest = {prefetch.name: prefetch.latest for prefetch in problem.prefetches}
    issue = {name: model.units[unit] for name, unit in zip(model.transfers, ordering.issue, strict=True)}
    return replace(
        plan,
        rings=rings,
        order=order,
        issue={name: phase for name, phase in issue.items() if phase != latest[name]},
        deferred={model.units[unit]: model.units[until] for unit, until in enumerate(ordering.deferred) if until >= 0},
    )


def _with_absent(placed: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """`known` as they are placed; one that the graph does not have stands behind the one before it."""
    found = [name for name in placed if name in set(known)]
    for before, name in zip(("", *known), known, strict=False):
        if name not in found:
            found.insert(found.index(before) + 1 if before else 0, name)
    return tuple(found)


def _placed(own: Sequence[str], order: Sequence[str] | None) -> list[str]:
    """`own` in another order; what it does not name stays right behind what it is lowered behind."""
    if order is None:
        return list(own)
    place, keys, last = {name: index for index, name in enumerate(order)}, dict[str, int](), -1
    for name in own:
        last = place.get(name, last)
        keys[name] = last
    return sorted(own, key=lambda name: keys[name])


def step_ns(model: Model, ordering: Ordering) -> float:
    """The time of a step, with loops cut as the model's are; inf if it would wait for ever."""
    from schedc.explore.fast.evaluate import evaluate

    given: list[Any] = [*model.numbers(), *ordering.all(), *model.room()]
    return float(evaluate(*given))
