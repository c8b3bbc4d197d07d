"""`schedc explore`: schedules of a model beside each other, a search for a better one, what its choices are worth."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli import completion
from schedc.cli.console import Json, print_json, simple_table, to_stderr, to_stdout
from schedc.cli.options import Model, ScheduleOptions, with_schedule_options
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.explore.ablate import Ablation
    from schedc.explore.row import Row
    from schedc.explore.search.population import Found, Report
    from schedc.explore.setting import Setting
    from schedc.schedule.plan import Plan


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(explore))


def explore(
    model: Model,
    options: ScheduleOptions,
    rows: Annotated[
        int, typer.Option("--rows", help="Sequences decoded in one step, or tokens of one (--rows-are), 1 to 16.")
    ] = 1,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            metavar="all|NAME,…",
            autocompletion=completion.policy_lists,
            help="Policies to compare, at their defaults.",
            show_default="all, without --policy and --plan",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the plan that is found here.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Say what each decision of the best plan is worth.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw time against slots and prefetch distance: PNG, SVG or PDF.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the table here.")] = None,
    executor: Annotated[
        str, typer.Option("--executor", help="local, or a running cluster: dask://host:port, ray://host:port.")
    ] = "local",
    jobs: Annotated[int, typer.Option("--jobs", help="Processes on this machine.", min=1)] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the search.")] = 0,
    rounds: Annotated[int, typer.Option("--rounds", help="Of the search, eight tasks each.", min=0)] = 20,
    steps: Annotated[int, typer.Option("--steps", help="Changes that each task of the search tries.", min=0)] = 20_000,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="End the search after the round in which they are over.", min=0)
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keep the search here after every round, and go on from it.")
    ] = None,
    prove: Annotated[bool, typer.Option("--prove/--no-prove", help="Prove the plan that is found.")] = True,
    json: Json = False,
) -> None:
    """Compare schedules of a model; with --policy search find a better one, and write it as a file.

    The best of the table is what --ablate and --plot are about. `schedc compile MODEL --plan FILE` compiles a plan that
    was found. Ctrl-C ends a search with what it has found so far.

    Examples:

      schedc explore smollm2-135m --policies all

      schedc explore smollm2-135m --policy search --jobs 2 --state state.json -o plan.yaml

      schedc explore smollm2-135m --plan plan.yaml --policies ring,double_buffer --ablate --plot slots.png
    """
    from schedc.cli.files import require_writable
    from schedc.cli.pictures import require_picture
    from schedc.compiler.placement import require_hbm
    from schedc.compiler.pricing import schedule
    from schedc.cost.machine import Machine
    from schedc.explore.ablate import ablations
    from schedc.explore.compare import compared, policies_named
    from schedc.explore.executors import executor as executor_at
    from schedc.explore.setting import Setting, prepared
    from schedc.schedule.registry import SEARCHES, SHIPPED
    from schedc.spec.load import load_spec

    if plot is not None:
        require_picture(plot, "--plot is written as")
    for path in (output, csv, state):
        if path is not None:
            require_writable(path)
    request = options.request(load_spec(model), rows)
    setting = Setting(request.spec, request.shape, request.target, Machine.of(request.target))
    spec, shape, target = request.spec, request.shape, request.target
    require_hbm(spec, shape, target, schedule(spec, shape, target), lambda *other: schedule(*other, target))
    searching = request.policy in SEARCHES
    if output is not None and not searching:
        raise UserError("--output is for the plan of a search: give --policy search or --policy optimal too")
    named = policies_named(policies or ("ring,double_buffer" if searching or options.plan else "all"))
    plans: dict[str, Plan] = {}
    result: dict[str, Any] = {}
    with executor_at(executor, jobs) as run:
        if searching:
            found = _searched(setting, request, (rounds, steps, seconds, seed), run, state, json)
            plans[request.policy] = _proven(setting, found, json) if prove else found.plan
            result["search"] = {"simulated": found.simulated, "rounds": found.rounds}
        elif options.plan or options.policy != ScheduleOptions.policy:
            name = Path(request.policy.removeprefix(SHIPPED)).stem if options.plan else request.policy
            plans[f"plan {name}" if options.plan else name] = _planned(setting, request)
        table = compared(setting, named, plans, run)
    best = min((r for r in table if r.step_us is not None), key=lambda r: r.step_us or 0.0, default=None)
    if best is None:
        raise UserError(f"no schedule of {request.spec.name} can be simulated: {table[0].reason}")
    result["rows"] = [r.to_dict() for r in table]
    if csv is not None:
        _write_csv(csv, table)
    if output is not None:
        _write_plan(output, setting, plans[request.policy], table)
    winner = _plan_of(setting, plans, table) if ablate or plot else None
    worth = ablations(prepared(setting), winner[1]) if ablate and winner else []
    if ablate and winner:
        result["ablations"] = {"of": winner[0], "decisions": [vars(a) for a in worth]}
    if plot is not None and winner:
        _plot(plot, setting, winner, result)
    if json:
        print_json(result)
        return
    _show(setting, table)
    if winner and ablate:
        _show_ablations(winner[0], worth)
    for path in (csv, output, plot):
        if path is not None:
            typer.echo(f"wrote {path}")


def _searched(
    setting: "Setting", request: Any, effort: tuple[Any, ...], run: Any, state: Path | None, json: bool
) -> "Found":
    from math import inf

    from schedc.explore.search.population import Effort, Found, search
    from schedc.explore.setting import prepared
    from schedc.explore.starts import starts
    from schedc.schedule.registry import run_policy

    rounds, steps, seconds, seed = effort
    if request.policy != "search":
        plan = run_policy(request.policy, prepared(setting).problem, dict(request.settings or {}))
        return Found(plan, prepared(setting).step_ns(plan), setting, 0, 0, ((plan, 0.0, setting),))
    if request.settings:
        raise UserError("--set: the search of `schedc explore` is set by --seed, --rounds, --steps and --seconds")
    begin = starts(prepared(setting).problem)
    with _progress(rounds, json) as report:
        return search(
            [setting],
            [(0, plan) for plan in begin.values()],
            Effort(rounds, steps, inf if seconds is None else seconds, seed),
            run,
            state,
            report,
        )


@contextmanager
def _progress(rounds: int, json: bool) -> "Iterator[Report]":
    """A bar on stderr; on a terminal only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("search"), BarColumn(), TextColumn("{task.fields[found]}"), TimeElapsedColumn())
    console = to_stderr()
    with Progress(*columns, console=console, disable=json or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("search", total=rounds, found="starts")

        def report(done: int, total: int, best: float, simulated: int) -> None:
            bar.update(task, completed=done, found=f"{best / 1e3:,.1f} µs, {simulated:,} orderings")

        yield report


def _proven(setting: "Setting", found: "Found", json: bool) -> "Plan":
    """The fastest finalist that fits and is proven."""
    from schedc.compiler.pipeline import limits_of, with_addresses
    from schedc.compiler.refusals import NotProven, prove
    from schedc.explore.setting import prepared
    from schedc.ir.allocate import DoesNotFit

    refused: Exception | None = None
    with to_stderr().status("proof"):
        for plan, step_ns, _ in found.finalists:
            if step_ns == float("inf"):
                continue
            try:
                program = with_addresses(prepared(setting).program(plan), setting.target)
                prove(program, limits_of(setting.target))
            except (NotProven, DoesNotFit) as error:
                refused = error
                continue
            return plan
    raise refused or UserError("the search has found no plan that can be built")


def _planned(setting: "Setting", request: Any) -> "Plan":
    from schedc.explore.setting import prepared
    from schedc.schedule.registry import run_policy

    return run_policy(request.policy, prepared(setting).problem, dict(request.settings or {}))


def _plan_of(setting: "Setting", plans: "dict[str, Plan]", table: "list[Row]") -> "tuple[str, Plan] | None":
    """The best plan of the table that is ours."""
    from schedc.explore.compare import HAND_WRITTEN
    from schedc.explore.setting import prepared
    from schedc.schedule.registry import run_policy

    ours = [r for r in table if r.step_us is not None and r.name != HAND_WRITTEN]
    if not ours:
        return None
    name = min(ours, key=lambda r: r.step_us or 0.0).name
    return name, plans[name] if name in plans else run_policy(name, prepared(setting).problem, {})


def _write_plan(path: Path, setting: "Setting", plan: "Plan", table: "list[Row]") -> None:
    import sys

    from schedc.cli.files import write_text
    from schedc.schedule.plan_file import PlanFile, plan_part, write_plan

    step = next((r.step_us for r in table if r.name in ("search", "optimal")), None)
    shape, target = setting.shape, setting.target
    file = PlanFile(
        model=setting.spec.name,
        target=target.name,
        devices=target.devices_used,
        rows=shape.rows,
        context=shape.context,
        found_by=" ".join(["schedc", *sys.argv[1:]]),
        predicted_us=step,
        plan=plan_part(plan),
    )
    write_text(path, write_plan(file))


def _write_csv(path: Path, table: "list[Row]") -> None:
    import csv
    import io

    from schedc.cli.files import write_text

    text = io.StringIO()
    columns = ["name", "step_us", "binding", "step_over_bound", "vmem_mib", "hbm_idle_us", "exposed_us", "waits_us",
               "reason"]  # fmt: skip
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(r.to_dict() for r in table)
    write_text(path, text.getvalue())


def _plot(path: Path, setting: "Setting", winner: "tuple[str, Plan]", result: dict[str, Any]) -> None:
    from schedc.explore.setting import prepared
    from schedc.explore.sweep import draw, lines

    found = lines(prepared(setting), winner[1])
    draw(found, f"{setting.spec.name} on {setting.target.name}, rows {setting.shape.rows}: {winner[0]}", path)
    result["sweeps"] = [vars(line) for line in found]


def _show(setting: "Setting", table: "list[Row]") -> None:
    shape, target = setting.shape, setting.target
    typer.echo(f"{setting.spec.name} on {target.describe()}; rows {shape.rows}, context {shape.context}\n")
    slowest = max(r.step_us for r in table if r.step_us is not None)
    columns = ("µs", "faster", "bound", "over it", "VMEM MiB", "HBM idle µs", "exposed µs")
    shown = simple_table("schedule", *columns, right=columns)
    for r in sorted(table, key=lambda r: r.step_us or float("inf")):
        if r.step_us is None or r.bound is None:
            shown.add_row(r.name, r.reason)
            continue
        vmem = "" if r.vmem_mib is None else f"{r.vmem_mib:.1f}"
        name, over = r.bound
        shown.add_row(r.name, f"{r.step_us:,.1f}", f"{slowest / r.step_us:.2f}×", name, f"{over:.2f}", vmem,
                      f"{r.hbm_idle_us:,.1f}", f"{r.exposed_us:,.1f}")  # fmt: skip
    to_stdout().print(shown)


def _show_ablations(name: str, worth: "list[Ablation]") -> None:
    typer.echo(f"\nwhat the decisions of {name} are worth, one taken away at a time\n")
    shown = simple_table("decision", "µs without", "worth µs", right=("µs without", "worth µs"))
    for ablation in worth:
        if ablation.step_us is None:
            shown.add_row(ablation.decision, "", ablation.reason)
        else:
            shown.add_row(ablation.decision, f"{ablation.step_us:,.1f}", f"{ablation.worth_us:+,.1f}")
    to_stdout().print(shown)
