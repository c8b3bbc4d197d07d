"""What is missing or impossible in a plan, before anything is made of it: every fault in words for who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from schedc.lower.graph import Order, SumCut
from schedc.lower.sites import site_problems
from schedc.schedule.legal import freedom_faults
from schedc.schedule.plan import Plan, Problem


def check_plan(problem: Problem, plan: Plan) -> list[str]:
    """All faults at once; what is free about an order is looked at only where there are no others."""
    faults = list(site_problems(dict(problem.sites), plan.collectives.items(), plan.wires.items()))
    if not faults:
        problem = problem.at(plan)
    faults += _ring_names(plan)
    faults += _semaphores(problem, plan)
    faults += _streams(problem, plan)
    faults += _selections(problem, plan)
    faults += _choices(problem, plan)
    faults += _prefetches(problem, plan)
    return faults or freedom_faults(problem, plan)


def _ring_names(plan: Plan) -> list[str]:
    """A ring's name begins those of its buffer and its semaphores, also in the kernel."""
    names = [ring.name for ring in plan.rings]
    faults = [f"{names.count(name)} rings are called {name}; names must differ" for name in sorted(set(names))
              if names.count(name) > 1]  # fmt: skip
    faults += [f"ring {name!r} needs a name of letters, digits and _" for name in names if not name.isidentifier()]
    return faults + [f"ring {ring.name} has no streams; leave it out" for ring in plan.rings if not ring.streams]


def _semaphores(problem: Problem, plan: Plan) -> Iterator[str]:
    """Slots without a semaphore each: no program is made whose size grows with slots that cannot be."""
    if problem.target is None:
        return
    most, chip = problem.target.capability.semaphores, problem.target.chip.name
    slots = sum(ring.slots for ring in plan.rings)
    if slots > most:
        rings = ", ".join(f"{ring.name} {ring.slots}" for ring in plan.rings)
        yield f"rings of {slots} slots in all ({rings}) need a semaphore a slot, and {chip} has {most}; use fewer slots"
    if plan.kv_slots > most:
        yield f"kv_slots is {plan.kv_slots}; they need a semaphore each, and {chip} has {most}; use fewer"


def _streams(problem: Problem, plan: Plan) -> Iterator[str]:
    """Every stream is cut into tiles and passes through one ring; those of chosen members have rings of their own."""
    placed = [name for ring in plan.rings for name in ring.streams]
    for stream in problem.streams:
        if placed.count(stream.name) != 1:
            yield f"stream {stream.name} is in {placed.count(stream.name)} rings; it must be in one"
        units = plan.tile_units.get(stream.name)
        if units is None or not 1 <= units <= stream.units:
            yield f"tile_units[{stream.name}] is {units}; it must be in 1..{stream.units}"
    known = {stream.name for stream in problem.streams}
    yield from (f"tile_units names {name}, which is not a stream" for name in plan.tile_units if name not in known)
    yield from (f"ring {r.name} has an unknown stream {s}" for r in plan.rings for s in r.streams if s not in known)
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    for ring in plan.rings:
        others = [name for name in ring.streams if name in known - chosen]
        if others and chosen.intersection(ring.streams):
            both = f"streams of chosen members and {', '.join(others)}"
            yield f"ring {ring.name} has {both}; they need rings of their own"


def _selections(problem: Problem, plan: Plan) -> Iterator[str]:
    """In what order the chosen members are gone through, and how many at once."""
    names = [selection.name for selection in problem.selections]
    there = ", ".join(names) or "none"
    for name, order in plan.orders.items():
        if name not in names:
            yield f"orders names {name}, which is not a selection; there are {there}"
        elif order not in get_args(Order):
            yield f"orders[{name}] is {order}; it must be one of {', '.join(get_args(Order))}"
    for name, count in plan.at_once.items():
        if name not in names:
            yield f"at_once names {name}, no selection; there are {there}"
        elif count < 1:
            yield f"at_once[{name}] is {count}; it must be 1 or more"


def _choices(problem: Problem, plan: Plan) -> Iterator[str]:
    if plan.sums not in get_args(SumCut):
        yield f"sums is {plan.sums}; it must be one of {', '.join(get_args(SumCut))}"
    if plan.kv_slots < 2:
        yield f"kv_slots is {plan.kv_slots}; it must be 2 or more: one is used, others are on their way"
    if plan.kv_tokens not in problem.kv_tokens:
        yield f"kv_tokens is {plan.kv_tokens}; it must be one of {', '.join(map(str, problem.kv_tokens))}"


def _prefetches(problem: Problem, plan: Plan) -> Iterator[str]:
    """Issued within their windows; in segments whose order is another, `freedom_faults` knows the window."""
    place = {phase.name: i for segment in problem.segments for i, phase in enumerate(segment.phases)}
    moved = {phase.name for segment in problem.segments if segment.name in plan.order for phase in segment.phases}
    windows = {prefetch.name: prefetch for prefetch in problem.prefetches}
    for name, phase in plan.issue.items():
        window = windows.get(name)
        if window is None:
            yield f"issue names {name}, which is not a prefetch; there are {', '.join(windows)}"
        elif phase in moved and window.latest in moved:
            continue
        elif phase not in place or not place[window.earliest] <= place[phase] <= place[window.latest]:
            yield f"issue[{name}] is {phase}; it must be from {window.earliest} to {window.latest}"
