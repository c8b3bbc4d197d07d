"""Policies by name: the built-in ones, and `./file.py:name` for a user's own."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TextIO, get_args

from schedc.errors import UserError
from schedc.lower.graph import Order, SumCut
from schedc.lower.sites import site_problems
from schedc.names import nearest
from schedc.schedule.legal import freedom_faults
from schedc.schedule.plan import Plan, Policy, Problem

POLICIES: dict[str, str] = {
    name: f"schedc.schedule.policies.{name}"
    for name in (
        "ring",
        "next_layer_attention",
        "defer_behind_experts",
        "earliest_fit",
        "xla_ratio",
        "double_buffer",
        "just_in_time",
    )
}
"""Policy → the module that has the function of that name. The leanest stands last."""

SEARCHES: dict[str, str] = {name: f"schedc.explore.policies.{name}" for name in ("search", "optimal")}
"""The same, of policies that try many plans: nothing else tries them."""

DEFAULT_POLICY = "ring"

SHIPPED = "plan:"
"""What the name of a plan that comes with schedc begins with, where a policy's name stands."""


def find_policy(name: str) -> Policy:
    """The policy called `name`, or the function `name` of a Python file for `path.py:name`."""
    path, separator, function = name.rpartition(":")
    if separator and path.endswith(".py"):
        return _from_file(Path(path), function)
    if name.startswith(SHIPPED) or name.endswith((".yaml", ".yml")):
        return _of_file(name.removeprefix(SHIPPED))
    modules = POLICIES | SEARCHES
    if name not in modules:
        close = nearest(name, modules)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(modules)}."
        raise UserError(f"no policy is called {name!r}; {hint} Your own: ./file.py:function")
    policy: Policy = getattr(importlib.import_module(modules[name]), name)
    return policy


def _of_file(name: str) -> Policy:
    """The policy that answers with the plan of a file, or with one that comes with schedc."""
    from schedc.schedule.plan_file import find_plan, read_plan

    plan = read_plan(find_plan(name)).plan.to_plan()
    return lambda problem: plan


def _from_file(path: Path, function: str) -> Policy:
    if not path.is_file():
        raise UserError(f"policy file {path} does not exist")
    module_spec = importlib.util.spec_from_file_location(f"schedc_policy_{path.stem}", path)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        with _prints_on_stderr():
            module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"policy file {path} cannot be loaded: {type(error).__name__}: {error}") from error
    policy = getattr(module, function, None)
    if not callable(policy):
        found = [name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")]
        raise UserError(f"policy file {path} has no function {function!r}; it has {', '.join(found) or 'none'}")
    return policy


def _prints_on_stderr() -> redirect_stdout[TextIO]:
    """While a user's code runs: stdout is for the answer of the command, which may be JSON."""
    return redirect_stdout(sys.stderr)


def run_policy(name: str, problem: Problem, settings: dict[str, int | float]) -> Plan:
    """The policy's plan. Raises UserError for unknown settings, an impossible plan or a failing policy file."""
    policy = find_policy(name)
    accepted = list(inspect.signature(policy).parameters.values())[1:]
    unknown = [key for key in settings if key not in {p.name for p in accepted}]
    if unknown:
        known = ", ".join(f"{p.name} (default {p.default})" for p in accepted) or "none"
        raise UserError(f"policy {name} has no setting {', '.join(unknown)}; its settings: {known}")
    fractions = [p.name for p in accepted if isinstance(p.default, int) and isinstance(settings.get(p.name), float)]
    if fractions:
        given = ", ".join(f"{key}={settings[key]:g}" for key in fractions)
        raise UserError(f"policy {name}: {given} must be a whole number")
    from schedc.schedule.plan_file import type_faults

    try:
        with _prints_on_stderr():
            plan = policy(problem, **settings)
    except UserError as error:
        raise UserError(f"policy {name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"policy {name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(plan, Plan):
        raise UserError(f"policy {name} returned {type(plan).__name__}, not a Plan")
    problems = type_faults(plan) or check_plan(problem, plan)
    if problems:
        raise UserError("\n".join([f"policy {name} gave a plan that cannot be built:", *(f"  {p}" for p in problems)]))
    return plan


def _ring_names(plan: Plan) -> list[str]:
    """A ring's name begins those of its buffer and its semaphores, also in the kernel."""
    names = [ring.name for ring in plan.rings]
    faults = [f"{names.count(name)} rings are called {name}; names must differ" for name in sorted(set(names))
              if names.count(name) > 1]  # fmt: skip
    faults += [f"ring {name!r} needs a name of letters, digits and _" for name in names if not name.isidentifier()]
    return faults + [f"ring {ring.name} has no streams; leave it out" for ring in plan.rings if not ring.streams]


def _semaphores(problem: Problem, plan: Plan) -> list[str]:
    """Slots without a semaphore each: no program is made whose size grows with slots that cannot be."""
    if problem.target is None:
        return []
    most, chip = problem.target.capability.semaphores, problem.target.chip.name
    slots, faults = sum(ring.slots for ring in plan.rings), []
    if slots > most:
        rings = ", ".join(f"{ring.name} {ring.slots}" for ring in plan.rings)
        faults.append(
            f"rings of {slots} slots in all ({rings}) need a semaphore a slot, and {chip} has {most}; use fewer slots"
        )
    if plan.kv_slots > most:
        faults.append(f"kv_slots is {plan.kv_slots}; they need a semaphore each, and {chip} has {most}; use fewer")
    return faults


def check_plan(problem: Problem, plan: Plan) -> list[str]:
    """What is missing or impossible in a plan, all at once."""
    problems = list(site_problems(dict(problem.sites), plan.collectives.items(), plan.wires.items()))
    if not problems:
        problem = problem.at(plan)
    problems += _ring_names(plan) + _semaphores(problem, plan)
    placed = [name for ring_ in plan.rings for name in ring_.streams]
    for stream in problem.streams:
        if placed.count(stream.name) != 1:
            problems.append(f"stream {stream.name} is in {placed.count(stream.name)} rings; it must be in one")
        units = plan.tile_units.get(stream.name)
        if units is None or not 1 <= units <= stream.units:
            problems.append(f"tile_units[{stream.name}] is {units}; it must be in 1..{stream.units}")
    known = {stream.name for stream in problem.streams}
    problems += [f"tile_units names {name}, which is not a stream" for name in plan.tile_units if name not in known]
    problems += [f"ring {r.name} has an unknown stream {s}" for r in plan.rings for s in r.streams if s not in known]
    chosen = {stream.name for stream in problem.chosen_matrices() + problem.chosen_vectors()}
    for ring_ in plan.rings:
        others = [name for name in ring_.streams if name in known - chosen]
        if others and chosen.intersection(ring_.streams):
            problems.append(
                f"ring {ring_.name} has streams of chosen members and {', '.join(others)}; they need rings of their own"
            )
    selections = [selection.name for selection in problem.selections]
    for name, order_ in plan.orders.items():
        if name not in selections:
            problems.append(
                f"orders names {name}, which is not a selection; there are {', '.join(selections) or 'none'}"
            )
        elif order_ not in get_args(Order):
            problems.append(f"orders[{name}] is {order_}; it must be one of {', '.join(get_args(Order))}")
    for name, count in plan.at_once.items():
        if name not in selections:
            problems.append(f"at_once names {name}, no selection; there are {', '.join(selections) or 'none'}")
        elif count < 1:
            problems.append(f"at_once[{name}] is {count}; it must be 1 or more")
    if plan.sums not in get_args(SumCut):
        problems.append(f"sums is {plan.sums}; it must be one of {', '.join(get_args(SumCut))}")
    if plan.kv_slots < 2:
        problems.append(f"kv_slots is {plan.kv_slots}; it must be 2 or more: one is used, others are on their way")
    if plan.kv_tokens not in problem.kv_tokens:
        problems.append(f"kv_tokens is {plan.kv_tokens}; it must be one of {', '.join(map(str, problem.kv_tokens))}")
    order = {phase.name: i for segment in problem.segments for i, phase in enumerate(segment.phases)}
    moved = {phase.name for segment in problem.segments if segment.name in plan.order for phase in segment.phases}
    windows = {prefetch.name: prefetch for prefetch in problem.prefetches}
    for name, phase in plan.issue.items():
        window = windows.get(name)
        if window is None:
            problems.append(f"issue names {name}, which is not a prefetch; there are {', '.join(windows)}")
        elif phase in moved and window.latest in moved:
            continue
        elif phase not in order or not order[window.earliest] <= order[phase] <= order[window.latest]:
            problems.append(f"issue[{name}] is {phase}; it must be from {window.earliest} to {window.latest}")
    return problems or freedom_faults(problem, plan)
