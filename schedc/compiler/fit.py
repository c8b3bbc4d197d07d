"""What to say when a schedule does not fit VMEM: the clash, the missing bytes, and smaller settings that fit.

Single changes come first: of each setting of the policy, of the policy and of the rows, the smallest reduction that
fits. Only if there is none, several settings are reduced together. Each is found by building that schedule.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product

from schedc.compiler.pricing import schedule
from schedc.errors import CheckFailed, SchedcError
from schedc.ir.allocate import DoesNotFit, fits
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows
from schedc.schedule.registry import find_policy
from schedc.spec.model import ModelSpec
from schedc.target.target import Target

Settings = Mapping[str, int | float]

_LEANER = ("ring", "double_buffer", "just_in_time")
"""Policies that are tried, the leanest last."""

_SHARES = (0.75, 0.5, 0.375, 0.25, 0.1875, 0.125, 0.0625)
"""What is tried of a setting that is a fraction, such as a size in MiB."""

_MOST_TOGETHER = 40
"""Trials of several settings at once."""

_SECONDS = 0.5
"""Of exact search in a trial."""


@dataclass(frozen=True)
class Trial:
    """A request to compile, and how to ask for it."""

    command: str
    shape: StepShape
    policy: str
    settings: Settings


def does_not_fit(
    error: DoesNotFit, spec: ModelSpec, shape: StepShape, target: Target, policy: str, settings: Settings | None
) -> CheckFailed:
    """The error to show, with what would fit."""
    lines = [
        f"{spec.name} does not fit the VMEM of {target.name} under policy {policy}: "
        f"{error.missing_bytes:,} bytes too many ({error.needed_bytes:,} of {error.capacity_bytes:,})",
        f"  fullest in {error.where}" + ("" if error.proven else " (the search for a tighter packing ran out of time)"),
        *(f"  {clash.buffer} in pool {clash.pool}: {clash.bytes:,} bytes" for clash in error.clashes),
    ]
    found = remedies(spec, target, Trial("", shape, policy, dict(settings or {})))
    lines += [f"  would fit: {found[0]}", *(f"         or: {command}" for command in found[1:])] if found else [
        "  no smaller setting of the built-in policies fits: use a target with more VMEM or a smaller model"
    ]  # fmt: skip
    return CheckFailed("\n".join(lines))


def remedies(spec: ModelSpec, target: Target, request: Trial) -> list[str]:
    """How to ask for what fits: of every single change the smallest, else the first of several changes together."""

    def first(trials: Iterator[Trial]) -> list[str]:
        return [trial.command for trial in islice((t for t in trials if _fits(spec, target, t)), 1)]

    single = [command for kind in _single(spec, target, request) for command in first(kind)]
    return single or first(_together(spec, target, request))


def _fits(spec: ModelSpec, target: Target, trial: Trial) -> bool:
    try:
        made = schedule(spec, trial.shape, target, trial.policy, trial.settings)
    except SchedcError:
        return False
    return fits(made.program, capacity_rows(target), _SECONDS)


def _single(spec: ModelSpec, target: Target, request: Trial) -> list[Iterator[Trial]]:
    """By kind of change the trials, the smallest change first."""
    values = _smaller_settings(spec, target, request)
    return [
        *(_with_settings(request, [name], product(several)) for name, several in values.items()),
        *(iter([_with_policy(request, policy)]) for policy in _LEANER if policy != request.policy),
        (_with_rows(request, rows) for rows in _smaller_rows(request.shape)),
    ]


def _together(spec: ModelSpec, target: Target, request: Trial) -> Iterator[Trial]:
    """Several settings, then the leanest policy with its smallest settings, then that for fewer rows."""
    values = _smaller_settings(spec, target, request)
    if len(values) > 1:
        yield from islice(_with_settings(request, list(values), product(*values.values())), _MOST_TOGETHER)
    for policy in reversed(_LEANER):
        lean = _with_policy(request, policy)
        smallest = {name: several[-1] for name, several in _smaller_settings(spec, target, lean).items()}
        if smallest:
            lean = next(_with_settings(lean, list(smallest), iter([tuple(smallest.values())])))
        yield lean
        yield from (_with_rows(lean, rows) for rows in _smaller_rows(request.shape))


def _smaller_settings(spec: ModelSpec, target: Target, request: Trial) -> dict[str, list[int | float]]:
    """Lower values of every numeric setting of the policy, the highest first.

    A setting at 0 leaves the number to the policy; it is taken to be that of the slots of its largest ring.
    """
    found: dict[str, list[int | float]] = {}
    for parameter in list(inspect.signature(find_policy(request.policy)).parameters.values())[1:]:
        value = request.settings.get(parameter.name, parameter.default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if isinstance(parameter.default, int):
            value = int(value) or _slots(spec, target, request)
            found[parameter.name] = [n for n in range(value - 1, 0, -1) if n < 16 or n % 8 == 0]
        else:
            found[parameter.name] = [value * share for share in _SHARES]
    return {name: several for name, several in found.items() if several}


def _slots(spec: ModelSpec, target: Target, request: Trial) -> int:
    try:
        made = schedule(spec, request.shape, target, request.policy, request.settings)
    except SchedcError:
        return 0
    return max((ring.slots for ring in made.plan.rings), default=0)


def _with_settings(request: Trial, names: list[str], values: Iterator[tuple[int | float, ...]]) -> Iterator[Trial]:
    for several in values:
        changed = dict(zip(names, several, strict=True))
        command = " ".join(f"--set {name}={value:g}" for name, value in changed.items())
        command = f"{request.command} {command}".strip()
        yield replace(request, command=command, settings={**request.settings, **changed})


def _with_policy(request: Trial, policy: str) -> Trial:
    accepted = list(inspect.signature(find_policy(policy)).parameters)[1:]
    dropped = [name for name in request.settings if name not in accepted]
    without = f" without --set {' --set '.join(dropped)}" if dropped else ""
    settings = {name: value for name, value in request.settings.items() if name in accepted}
    return replace(request, command=f"--policy {policy}{without}", policy=policy, settings=settings)


def _with_rows(request: Trial, rows: int) -> Trial:
    shape = replace(request.shape, rows=rows)
    return replace(request, command=f"{request.command} --rows {rows}".strip(), shape=shape)


def _smaller_rows(shape: StepShape) -> list[int]:
    return [rows for rows in (64, 32, 16, 8, 4, 2, 1) if rows < shape.rows]
