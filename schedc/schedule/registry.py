"""Policies by name: the built-in ones, and `./file.py:name` for a user's own."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import TextIO

from schedc.errors import UserError
from schedc.names import nearest
from schedc.schedule.plan import Plan, Policy, Problem
from schedc.schedule.plan_faults import check_plan

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


def is_plan(name: str) -> bool:
    """Whether a policy's name is that of a plan: a file, or one that comes with schedc."""
    return name.startswith(SHIPPED) or name.endswith((".yaml", ".yml"))


def find_policy(name: str) -> Policy:
    """The policy called `name`, the function of `path.py:function`, or the plan of a file. Raises UserError."""
    path, separator, function = name.rpartition(":")
    if separator and path.endswith(".py"):
        return _from_file(Path(path), function)
    if is_plan(name):
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
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"policy file {path} cannot be loaded{_place(error, str(path))}: {what}") from error
    policy = getattr(module, function, None)
    if not callable(policy):
        found = [name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")]
        raise UserError(f"policy file {path} has no function {function!r}; it has {', '.join(found) or 'none'}")
    return policy


def _place(error: BaseException, file: str) -> str:
    """` at line 6, `return 1 // depth``: the last line of a user's own file that was executed; "" for no such file."""
    path = Path(file).resolve()
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == path]
    return f" at line {own[-1].lineno}, `{own[-1].line}`" if own else ""


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
        raise UserError(
            f"policy {name} failed{_place(error, name.rpartition(':')[0])}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(plan, Plan):
        raise UserError(f"policy {name} returned {type(plan).__name__}, not a Plan")
    problems = type_faults(plan) or check_plan(problem, plan)
    if problems:
        raise UserError("\n".join([f"policy {name} gave a plan that cannot be built:", *(f"  {p}" for p in problems)]))
    return plan
