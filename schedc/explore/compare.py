"""Every policy, and what others published, in rows beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedc.errors import SchedcError, UserError
from schedc.explore.executors import Executor
from schedc.explore.row import Row, row
from schedc.explore.setting import Prepared, Setting, prepared
from schedc.schedule.plan import Plan
from schedc.schedule.registry import POLICIES, SEARCHES, find_policy, run_policy

HAND_WRITTEN = "handwritten"


@dataclass(frozen=True)
class Planned:
    """A plan, and the setting it is for."""

    setting: Setting
    plan: Plan


def policies_named(text: str) -> list[str]:
    """`all`, or names with commas between. Raises UserError for a policy that takes a search, and one that is none."""
    names = [*POLICIES, HAND_WRITTEN] if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"--policies {text}: names none; there are {', '.join((*POLICIES, HAND_WRITTEN))}, or all")
    searches = [name for name in names if name in SEARCHES]
    if searches:
        raise UserError(f"--policies {text}: {', '.join(searches)} tries many plans: ask for it by --policy")
    for name in names:
        if name != HAND_WRITTEN:
            find_policy(name)
    return names


def compared(setting: Setting, names: Sequence[str], plans: Mapping[str, Planned], executor: Executor) -> list[Row]:
    """A row for every policy at its defaults, what is published, and every plan."""
    own = [name for name in names if name != HAND_WRITTEN]
    tasks: list[tuple[Setting, str, Plan | None]] = [(setting, name, None) for name in own]
    tasks += [(planned.setting, name, planned.plan) for name, planned in plans.items()]
    rows = list(executor.map(_row, tasks))
    if HAND_WRITTEN in names:
        found = handwritten(setting)
        rows = [found, *rows] if found else rows
    return rows


def _row(task: tuple[Setting, str, Plan | None]) -> Row:
    setting, name, plan = task
    ready: Prepared = prepared(setting)
    if plan is None:
        try:
            plan = run_policy(name, ready.problem, {})
        except UserError as error:
            return Row(name, reason=str(error).partition("\n")[0])
    return row(name, ready, plan)


def handwritten(setting: Setting) -> Row | None:
    """The published hand-written schedule of this model and target, its phases by their measured cycles."""
    from schedc.published.demand import Demand
    from schedc.published.predict import predict_published
    from schedc.published.read import list_published, load_published

    name, shape = setting.spec.name, setting.shape
    if name not in list_published():
        return None
    schedule = load_published(name)
    if (schedule.target, schedule.devices) != (setting.target.name, setting.target.devices_used):
        return None
    try:
        found = predict_published(
            schedule, Demand(shape.rows, shape.rows_are == "tokens", shape.context), load=setting.load
        )
    except SchedcError as error:
        return Row(HAND_WRITTEN, reason=str(error).partition("\n")[0])
    bound, time = found.largest_bound
    return Row(
        HAND_WRITTEN,
        step_us=round(found.step_us, 3),
        bounds_us={bound: time},
        hbm_idle_us=round(found.hbm_idle_us, 3),
        exposed_us=round(found.exchange_us, 3),
        waits_us=round(found.exchange_us + found.transfer_us, 3),
    )
