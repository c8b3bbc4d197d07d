"""Plans to start a search from: those of the policies, at several settings."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.errors import UserError
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.registry import POLICIES, run_policy

RINGS: tuple[Mapping[str, float], ...] = tuple(
    {"slot_mib": slot, "expert_mib": slot, **more}
    for slot in (1.0, 2.0, 4.0)
    for more in ({}, {"whole_sums": 1}, {"expert_slots": 6})
)
"""Settings of the policy `ring`."""

SLOTS = (1.0, 4.0)
"""Slots of other sizes for the policies that have a choice of them, MiB."""

FEW: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("earliest_fit", {"slot_mib": 4.0}),
    ("ring", {"slot_mib": 4.0, "expert_mib": 4.0}),
    ("ring", {"slot_mib": 2.0, "expert_mib": 2.0}),
)
"""From which a setting is judged beside others: policies that are good in most."""

NOT_STARTED_FROM = ("search", "optimal")


def starts(problem: Problem, few: bool = False) -> dict[str, Plan]:
    """By a name, the plan of every policy at its defaults and with slots of other sizes, or a few of them; those that
    can be built."""
    asked: list[tuple[str, Mapping[str, float]]] = [(name, {}) for name in POLICIES if name not in NOT_STARTED_FROM]
    asked += [(name, {"slot_mib": slot}) for name, _ in asked if name != "ring" for slot in SLOTS]
    asked += [("ring", settings) for settings in RINGS]
    asked = list(FEW) if few else asked
    found: dict[str, Plan] = {}
    for name, settings in asked:
        label = " ".join([name, *(f"{key}={value:g}" for key, value in settings.items())])
        try:
            found[label] = run_policy(name, problem, dict(settings))
        except UserError:
            continue
    return found
