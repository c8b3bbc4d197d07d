"""The search of `schedc explore`: run with a progress bar, its result proven and written as a file."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedc.cli.console import to_stderr
from schedc.cli.options import ScheduleOptions
from schedc.cli.predict_options import SearchedPredictOptions
from schedc.cli.search_options import SearchOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.pipeline import Request
    from schedc.explore.compare import Planned
    from schedc.explore.row import Row
    from schedc.explore.search.population import Found, Report
    from schedc.explore.setting import Setting
    from schedc.schedule.plan import Plan


def searched(setting: "Setting", request: "Request", asked: SearchOptions, run: Any, json: bool) -> "Found":
    """By `--policy search` as asked; by `optimal`, its one plan. Raises UserError."""
    from math import inf

    from schedc.explore.placements import placements_beside
    from schedc.explore.search.population import Effort, Found, search
    from schedc.explore.search.stages import stages_of
    from schedc.explore.setting import prepared
    from schedc.explore.starts import starts
    from schedc.schedule.registry import run_policy

    if request.policy != "search":
        plan = run_policy(request.policy, prepared(setting).problem, dict(request.settings or {}))
        step = prepared(setting).step_ns(plan)
        return Found(plan, step, setting, 0, 0, ((plan, step, setting),))
    if request.settings:
        raise UserError("--set: the search of `schedc explore` is set by --seed, --rounds, --steps and --seconds")
    vary = asked.varied()
    settings = [setting, *(placements_beside(setting).values() if "placement" in vary else ())]
    with to_stderr().status("plans to start from"):
        problems = [prepared(one).problem for one in settings]
        begin = [(s, plan) for s, one in enumerate(problems) for plan in starts(one, few=s > 0).values()]
    stages = stages_of(bool(prepared(setting).problem.sites), "wire" in vary, len(settings))
    effort = Effort(asked.rounds, asked.steps, inf if asked.seconds is None else asked.seconds, asked.draws)
    with _progress(asked.rounds, json) as report:
        return search(settings, begin, effort, run, asked.state, report, stages)


@contextmanager
def _progress(rounds: int, json: bool) -> "Iterator[Report]":
    """A bar on stderr; on a terminal only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("search"), BarColumn(), TextColumn("{task.fields[found]}"), TimeElapsedColumn())
    console = to_stderr()
    with Progress(*columns, console=console, disable=json or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("search", total=rounds, found="first round, which compiles the simulation if need be")

        def report(done: int, total: int, best: float, simulated: int) -> None:
            bar.update(task, completed=done, found=f"{best / 1e3:,.1f} µs, {simulated:,} orderings")

        yield report


def proven(found: "Found") -> "tuple[Plan, Setting]":
    """The fastest finalist that fits and is proven, and the setting it is of."""
    from schedc.compiler.pipeline import limits_of, with_addresses
    from schedc.compiler.refusals import NotProven, prove
    from schedc.explore.setting import prepared
    from schedc.ir.allocate import DoesNotFit

    refused: Exception | None = None
    with to_stderr().status("proof"):
        for plan, step_ns, setting in found.finalists:
            if step_ns == float("inf"):
                continue
            try:
                program = with_addresses(prepared(setting).program(plan), setting.target)
                prove(program, limits_of(setting.target))
            except (NotProven, DoesNotFit) as error:
                refused = error
                continue
            return plan, setting
    raise refused or UserError("the search has found no plan that can be built")


def facts_of(found: "Found") -> dict[str, Any]:
    """What a search did, and what it had at the end of every stage."""
    reached = [
        {
            "stage": one.stage,
            "step_us": round(one.step_ns / 1e3, 3),
            "collectives": dict(one.plan.collectives),
            "wires": dict(one.plan.wires),
            "placement": one.setting.shape.placement.model_dump(mode="json", exclude_none=True),
        }
        for one in found.reached
    ]
    return {"simulated": found.simulated, "rounds": found.rounds, "reached": reached}


def write_found(
    path: Path,
    of: "Planned",
    row: "Row",
    options: ScheduleOptions,
    asked: SearchOptions,
    assumed: SearchedPredictOptions,
    request: "Request",
) -> None:
    """The plan with all that its step needs, as `schedc compile --plan` takes it."""
    from dataclasses import fields

    from schedc.cli.files import write_text
    from schedc.schedule.plan_file import VERSION, AssumedPart, PlanFile, plan_part, write_plan

    shape, target, talk = of.setting.shape, of.setting.target, of.setting.shape.communication
    many = shape.devices > 1
    effort: dict[str, int | float] = {"seed": asked.draws, "rounds": asked.rounds, "steps": asked.steps}
    load = assumed.load()
    given = {field.name: getattr(assumed, field.name) for field in fields(assumed)}
    file = PlanFile(
        version=VERSION,
        model=of.setting.spec.name,
        target=target.name,
        devices=target.devices_used,
        rows=shape.rows,
        rows_are=shape.rows_are,
        context=shape.context,
        weights=options.weights,
        weights_of=options.weights_of,
        kv=options.kv,
        latent_cache=options.latent_cache,
        window_cache=options.window_cache,
        wire=_by_site(talk.wire, talk.wires) if many else None,
        collective=_by_site(talk.all_reduce, talk.collectives) if many else None,
        forms=dict(shape.forms),
        taps=shape.taps,
        placement=shape.placement if many else None,
        assumed=AssumedPart(
            **{**given, "routing": given["routing"] or "uniform", "experts": load.experts, "seed": load.seed}
        ),
        settings=effort if request.policy == "search" else dict(request.settings or {}),
        found_by=shlex.join(["schedc", *sys.argv[1:]]),
        predicted_us=row.step_us,
        priced_by=of.setting.machine.priced_by,
        plan=plan_part(of.plan),
    )
    write_text(path, write_plan(file))


def _by_site(default: str, sites: tuple[tuple[str, str], ...]) -> str:
    return ",".join([default, *(f"{site}={value}" for site, value in sites)])
