"""`schedc explore`: schedules of a model beside each other, a search for a better one, what its choices are worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli import completion
from schedc.cli.console import Json, print_json
from schedc.cli.options import Model, Rows, ScheduleOptions, with_options
from schedc.cli.predict_options import SearchedPredictOptions
from schedc.cli.search_options import SearchOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.pipeline import Request
    from schedc.explore.compare import Planned
    from schedc.explore.row import Row
    from schedc.explore.setting import Setting


def register(app: typer.Typer) -> None:
    groups = {"options": ScheduleOptions, "assumed": SearchedPredictOptions, "search": SearchOptions}
    app.command()(with_options(explore, **groups))


def explore(
    model: Model,
    options: ScheduleOptions,
    assumed: SearchedPredictOptions,
    search: SearchOptions,
    rows: Rows = None,
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
    from schedc.cli.explore_search import write_found
    from schedc.cli.explore_view import show, show_ablations, show_reached, write_csv
    from schedc.cli.planned import with_assumed
    from schedc.explore.compare import compared, policies_named
    from schedc.explore.executors import executor as executor_at
    from schedc.schedule.registry import SEARCHES
    from schedc.spec.load import load_spec

    _require_files(output, plot, csv, search.state)
    request, assumed = options.request(load_spec(model), rows), with_assumed(assumed, options.plan)
    setting = _setting(request, assumed)
    searching = request.policy in SEARCHES
    if output is not None and not searching:
        raise UserError("--output is for the plan of a search: give --policy search or --policy optimal too")
    if search.vary and request.policy != "search":
        raise UserError(f"--vary {search.vary}: is for a search: give --policy search too")
    named = policies_named(policies or ("ring,double_buffer" if searching or options.plan else "all"))
    with executor_at(search.executor, search.jobs) as run:
        plans, facts = _plans(setting, request, options, search, run, json)
        table = compared(setting, [name for name in named if name not in plans], plans, run)
    if all(r.step_us is None for r in table):
        raise UserError(f"no schedule of {request.spec.name} can be simulated: {table[0].reason}")
    result: dict[str, Any] = {**({"search": facts} if facts else {}), "rows": [r.to_dict() for r in table]}
    if csv is not None:
        write_csv(csv, table)
    if output is not None:
        row = next(r for r in table if r.name == request.policy)
        write_found(output, plans[request.policy], row, options, search, assumed, request)
    if ablate or plot is not None:
        result |= _looked_into(_best(setting, plans, table), ablate, plot)
    if json:
        print_json(result)
        return
    show(setting, table)
    show_reached(facts.get("reached", ()))
    show_ablations(result.get("ablations"))
    for path in (csv, output, plot):
        if path is not None:
            typer.echo(f"wrote {path}")


def _require_files(output: Path | None, plot: Path | None, csv: Path | None, state: Path | None) -> None:
    """Raises UserError for files that cannot be written, before anything is computed for them."""
    from schedc.cli.files import require_different, require_suffix, require_writable
    from schedc.cli.pictures import require_picture

    if plot is not None:
        require_picture(plot, "--plot is written as")
    for path in (output, csv, state):
        if path is not None:
            require_writable(path)
    if output is not None:
        require_suffix(output, (".yaml", ".yml"), "a plan is written as")
    require_different({"--output": output, "--plot": plot, "--csv": csv, "--state": state})


def _looked_into(best: "tuple[str, Planned] | None", ablate: bool, plot: Path | None) -> dict[str, Any]:
    """What the decisions of the best plan are worth, and the lines of the plot, as asked."""
    from schedc.cli.explore_view import plotted
    from schedc.explore.ablate import ablations
    from schedc.explore.setting import prepared

    result: dict[str, Any] = {}
    if best is not None and ablate:
        worth = ablations(prepared(best[1].setting), best[1].plan)
        result["ablations"] = {"of": best[0], "decisions": [vars(one) for one in worth]}
    if best is not None and plot is not None:
        result["sweeps"] = plotted(plot, *best)
    return result


def _setting(request: "Request", assumed: SearchedPredictOptions) -> "Setting":
    """Raises CheckFailed for a model that does not fit the devices."""
    from schedc.compiler.placement import require_hbm
    from schedc.compiler.pricing import schedule
    from schedc.explore.setting import Setting

    spec, shape, target = request.spec, request.shape, request.target
    setting = Setting(spec, shape, target, assumed.machine(target), assumed.load())
    require_hbm(spec, shape, target, schedule(spec, shape, target), lambda model, size: schedule(model, size, target))
    return setting


def _plans(
    setting: "Setting", request: "Request", options: ScheduleOptions, search: SearchOptions, run: Any, json: bool
) -> "tuple[dict[str, Planned], dict[str, Any]]":
    """The plan that is searched or asked for, by its name in the table, and what there is to say of a search."""
    from schedc.cli.explore_search import facts_of, proven, searched
    from schedc.explore.compare import Planned
    from schedc.explore.setting import prepared
    from schedc.schedule.registry import DEFAULT_POLICY, SEARCHES, run_policy

    if request.policy in SEARCHES:
        found = searched(setting, request, search, run, json)
        plan, of = proven(found) if search.prove else (found.plan, found.setting)
        return {request.policy: Planned(of, plan)}, facts_of(found)
    settings = dict(request.settings or {})
    if options.plan or settings or request.policy != DEFAULT_POLICY:
        plan = run_policy(request.policy, prepared(setting).problem, settings)
        return {_named(request.policy, settings, bool(options.plan)): Planned(setting, plan)}, {}
    return {}, {}


def _named(policy: str, settings: dict[str, int | float], is_plan: bool) -> str:
    """In the table, where a policy at its defaults may stand too."""
    from schedc.schedule.registry import SHIPPED

    if is_plan:
        return f"plan {policy.removeprefix(SHIPPED) if policy.startswith(SHIPPED) else Path(policy).stem}"
    return " ".join((policy, *(f"{key}={value:g}" for key, value in settings.items())))


def _best(setting: "Setting", plans: "dict[str, Planned]", table: "list[Row]") -> "tuple[str, Planned] | None":
    """The best plan of the table that is ours."""
    from schedc.explore.compare import HAND_WRITTEN, Planned
    from schedc.explore.setting import prepared
    from schedc.schedule.registry import run_policy

    ours = [r for r in table if r.step_us is not None and r.name != HAND_WRITTEN]
    if not ours:
        return None
    name = min(ours, key=lambda r: r.step_us or 0.0).name
    return name, plans[name] if name in plans else Planned(setting, run_policy(name, prepared(setting).problem, {}))
