"""`schedc published --gains`: where a gain over a hand-written kernel comes from, in three steps."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Stages, print_json, simple_table, to_stdout
from schedc.errors import SchedcError, UserError

if TYPE_CHECKING:
    from schedc.cli.predict_options import PredictOptions
    from schedc.cost.machine import Machine
    from schedc.cost.routing import Load
    from schedc.published.demand import Demand
    from schedc.published.form import PublishedSchedule
    from schedc.published.gains import Tried
    from schedc.target.target import Target

STEPS = (("published", "as published"), ("order", "another order"), ("collectives", "and other exchanges"))


_PANEL = "Our own schedule, with --gains"


def _option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **settings)


@dataclass(frozen=True)
class OurOptions:
    """What our own schedule is made with; what they mean, `schedc compile --help` says."""

    policy: Annotated[str | None, _option("--policy", help="The order of the transfers.")] = None
    settings: Annotated[
        list[str] | None, _option("--set", metavar="KEY=VALUE", help="A setting of the policy; may be repeated.")
    ] = None
    placement: Annotated[str | None, _option("--placement", metavar="FILE", help="Rules of the placement.")] = None
    collective: Annotated[str | None, _option("--collective", help="How devices sum.")] = None
    wire: Annotated[str | None, _option("--wire", help="What devices send each other.")] = None

    @property
    def given(self) -> dict[str, Any]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}

    @property
    def text(self) -> str:
        """As they are given to `schedc compile`."""
        words = [f"--{name} {value}" for name, value in self.given.items() if name != "settings"]
        return " ".join([*words, *(f"--set {text}" for text in self.settings or ())]) or "the default options"


@dataclass(frozen=True)
class Ours:
    step_us: float | None
    bounds: dict[str, float]
    why_not: str = ""


@dataclass(frozen=True)
class Column:
    demand: "Demand"
    tried: "list[Tried]"
    ours: Ours

    def step_us(self, kind: Any) -> float:
        from schedc.published.gains import best_of

        prediction = best_of(self.tried, kind).prediction
        assert prediction is not None
        return prediction.step_us

    def bound(self, kind: Any) -> tuple[str, float]:
        from schedc.published.gains import best_of

        prediction = best_of(self.tried, kind).prediction
        assert prediction is not None
        return prediction.largest_bound


def show_gains(
    name: str, demands: "list[Demand]", assumed: "PredictOptions", options: OurOptions, json: bool
) -> "PublishedSchedule":
    """Prints them; gives the best schedule of the first step. Raises UserError where there are no variants."""
    from schedc.published.gains import best_of
    from schedc.published.gains import gains as gains_of
    from schedc.published.predict import machine_of
    from schedc.published.read import load_published
    from schedc.published.variants import has_variants, read_variants

    if not has_variants(name):
        raise UserError(f"--gains: there are no variants of {name}")
    variants, schedule, stages, columns = read_variants(name), load_published(name), Stages(), []
    machine, load = machine_of(schedule, assumed.machine), assumed.load()
    for demand in demands:
        tried = []
        with stages.stage(demand.name) as say:
            for one in gains_of(variants, demand, machine, load):
                say(one.name)
                tried.append(one)
            say("our own schedule")
            columns.append(Column(demand, tried, our_step(schedule, demand, options, assumed.machine, load)))
    if json:
        print_json([_to_dict(column, options) for column in columns])
    else:
        _show(columns, options)
    return best_of(columns[0].tried, "collectives").schedule


def our_step(
    schedule: "PublishedSchedule",
    demand: "Demand",
    options: OurOptions,
    machine_on: Callable[["Target"], "Machine"],
    load: "Load",
) -> Ours:
    """Scheduled and predicted under the same timeline; not proven again, `schedc compile` does that."""
    from schedc.cli.options import ScheduleOptions
    from schedc.compiler.pipeline import build
    from schedc.cost.inputs import default_inputs
    from schedc.cost.report import predict
    from schedc.spec.load import load_spec

    asked = ScheduleOptions(
        target=schedule.target,
        devices=schedule.devices,
        context=demand.context,
        rows_are="tokens" if demand.verify else "sequences",
        **options.given,
    )
    try:
        request = asked.request(load_spec(schedule.model), demand.rows)
        _, program = build(request)
    except UserError:
        raise
    except SchedcError as error:
        return Ours(None, {}, str(error).splitlines()[0])
    given = default_inputs(program, demand.position, load)
    found = predict(program, request.target, {"position": given["position"]}, machine_on(request.target), load)
    return Ours(found.step_us, {name: bound.time_us for name, bound in found.bounds.items()})


def _to_dict(column: Column, options: OurOptions) -> dict[str, Any]:
    return {
        "step": column.demand.name,
        "context": column.demand.context,
        "position": column.demand.position,
        "variants": [tried.to_dict() for tried in column.tried],
        "steps": {kind: column.step_us(kind) for kind, _ in STEPS},
        "ours": {
            "options": options.text,
            "step_us": column.ours.step_us,
            "bounds": column.ours.bounds,
            "why_not": column.ours.why_not,
        },
    }


def _show(columns: list[Column], options: OurOptions) -> None:
    names = [column.demand.name for column in columns]
    table = simple_table("µs that each is worth", "", *names, right=names)
    for index, tried in enumerate(columns[0].tried):
        if tried.variant is not None:
            table.add_row(tried.name, tried.variant.kind, *(_worth(column.tried[index]) for column in columns))
    console = to_stdout()
    console.print(table)
    table = simple_table("µs a step", *names, right=names)
    for kind, text in STEPS:
        table.add_row(text, *(_gain(column, column.step_us(kind)) for column in columns))
    table.add_row("  its largest bound", *(_bound(column.bound("collectives")) for column in columns))
    table.add_row("our own schedule", *(_gain(column, column.ours.step_us) for column in columns))
    table.add_row("  its largest bound", *(_bound(_largest(column.ours)) for column in columns))
    typer.echo()
    console.print(table)
    typer.echo(f"\nour own schedule: {options.text}")
    for column in columns:
        if column.ours.why_not:
            typer.echo(f"{column.demand.name}: {column.ours.why_not}")


def _worth(tried: "Tried") -> str:
    if tried.kept:
        return f"{tried.worth_us:,.0f}"
    return "no room" if "VMEM" in tried.why_not else "–"


def _gain(column: Column, step_us: float | None) -> str:
    if step_us is None:
        return "does not fit"
    return f"{step_us:,.0f} ({column.step_us('published') / step_us:.2f}×)"


def _bound(found: tuple[str, float] | None) -> str:
    return "" if found is None else f"{found[1]:,.0f} {found[0]}"


def _largest(ours: Ours) -> tuple[str, float] | None:
    return max(ours.bounds.items(), key=lambda item: item[1]) if ours.bounds else None
