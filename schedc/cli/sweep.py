"""`schedc sweep`: predicted steps, rates and prices over batches, contexts, topologies and acceptance lengths."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, Stages, print_json, simple_table, to_stdout
from schedc.cli.options import DEFAULT_TARGET, Model, ScheduleOptions, with_options
from schedc.cli.predict_options import PredictOptions

if TYPE_CHECKING:
    from rich.table import Table

    from schedc.compiler.pipeline import Request
    from schedc.compiler.sweep import Point

_AXES = "Axes"


@dataclass(frozen=True)
class SweepOptions(ScheduleOptions):
    """As for one schedule, but for the context, of which there may be several."""

    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="N,N…",
            help="Tokens a sequence may have.",
            show_default="4096, or as many as the model knows",
            rich_help_panel=_AXES,
        ),
    ] = None  # type: ignore[assignment]

    def one(self, context: int | None, topology: str | None) -> ScheduleOptions:
        """The options of one schedule."""
        values = {field.name: getattr(self, field.name) for field in fields(ScheduleOptions)}
        chip = self.target if topology is None else f"{_without_topology(self.target or DEFAULT_TARGET)}:{topology}"
        return ScheduleOptions(**values | {"context": context, "target": chip})


def register(app: typer.Typer) -> None:
    app.command()(with_options(sweep, options=SweepOptions, assumed=PredictOptions))


def sweep(
    model: Model,
    options: SweepOptions,
    assumed: PredictOptions,
    batch: Annotated[
        str, typer.Option("--batch", metavar="N,N…", help="Rows of a step, 1 to 16.", rich_help_panel=_AXES)
    ] = "1",
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="AxBxC,…",
            help="Topologies of the target's chip, as in 2x2x1,2x2x4.",
            show_default="that of --target",
            rich_help_panel=_AXES,
        ),
    ] = None,
    accept: Annotated[
        str,
        typer.Option(
            "--accept",
            metavar="X,X…",
            help="Tokens a verifying step gives on average (--rows-are tokens), its own among them.",
            rich_help_panel=_AXES,
        ),
    ] = "1",
    draft_us: Annotated[float, typer.Option("--draft-us", help="What a draft takes, for --accept over 1.", min=0)] = 0,
    filled: Annotated[
        float, typer.Option("--filled", help="Share of the context that tokens see and the prompt has.", min=0, max=1)
    ] = 0.5,
    steps_per_call: Annotated[
        int, typer.Option("--steps-per-call", help="Steps that share what a call adds.", min=1)
    ] = 1,
    price: Annotated[float | None, typer.Option("--price", help="Dollars a chip-hour.", min=0)] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    json: Json = False,
) -> None:
    """Predict a model over batches, contexts, topologies and acceptance lengths: time, tokens a second, price.

    Every point is scheduled, allocated and simulated, not proven. The time of the prompt is a roofline estimate: schedc
    makes no prefill kernels. What cannot be, such as a model that does not fit, is a row that says why.

    Examples:

      schedc sweep kimi-k3 --target tpu7x:2x2x4 --set slot_mib=4 --batch 1,2,4,8 --context 4096,131072 --price 2.5

      schedc sweep muse-spark --topology 2x2x1,2x2x2 --batch 8 --rows-are tokens --accept 1,3,5 --draft-us 120 --csv
    """
    from schedc.cli.planned import with_assumed
    from schedc.compiler.sweep import Axes, Economics
    from schedc.compiler.sweep import sweep as points_of
    from schedc.errors import UserError
    from schedc.spec.load import load_spec

    if json and as_csv:
        raise UserError("--json --csv: there is one output; give one of them")
    spec = load_spec(model)
    axes = Axes(
        batches=_numbers("--batch", batch, int),
        contexts=[None] if options.context is None else _numbers("--context", options.context, int),
        topologies=[None] if topology is None else topology.split(","),
        accepts=_numbers("--accept", accept, float),
    )
    economics, assumed = Economics(filled, draft_us, steps_per_call, price), with_assumed(assumed, options.plan)

    def asked(rows: int, context: int | None, shape: str | None) -> "Request":
        return options.one(context, shape).request(spec, rows)

    stages = Stages()
    with stages.stage("sweep") as say:
        found = list(points_of(asked, axes, economics, lambda made: assumed.machine(made.target), assumed.load(), say))
    points = [replace(point, target=point.target or options.target or DEFAULT_TARGET) for point in found]
    if json:
        print_json({"model": spec.name, "points": [point.to_dict() for point in points], "seconds": stages.seconds})
    elif as_csv:
        _write_csv(points)
    else:
        _show(points, price is not None)
    _require_any(points)


def _require_any(points: "Sequence[Point]") -> None:
    """Raises CheckFailed with the reasons if none of them could be predicted."""
    from schedc.errors import CheckFailed

    if all(point.refused for point in points):
        reasons = dict.fromkeys(point.refused for point in points)
        raise CheckFailed("no point can be predicted:\n" + "\n".join(f"  {reason}" for reason in reasons))


def _show(points: "Sequence[Point]", priced: bool) -> None:
    console = to_stdout()
    console.print(_table(points, priced))
    console.print("The prompt's time is an estimate from a roofline; steps are priced by " + _sources(points) + ".")
    for point in points:
        if point.refused is not None:
            where = f"{point.target}, batch {point.batch}, context {point.context or 'default'}"
            where += f", accept {point.accept:g}"
            console.print(f"{where}: {point.refused}", markup=False, soft_wrap=True)


def _numbers(option: str, text: str, kind: type) -> list[Any]:
    from schedc.errors import UserError

    try:
        found = [kind(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or any(number <= 0 for number in found):
        raise UserError(f"{option} {text}: must be numbers over 0 with commas between them, as in 1,2,4")
    return found


def _without_topology(target: str) -> str:
    """`tpu7x:2x2x1` → `tpu7x`."""
    name, colon, _ = target.rpartition(":")
    return name if colon and name else target


def _sources(points: "Sequence[Point]") -> str:
    return " or ".join(dict.fromkeys(point.priced_by for point in points if point.priced_by)) or "nothing"


def _write_csv(points: "Sequence[Point]") -> None:
    from schedc.compiler.sweep import COLUMNS

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for point in points:
        row = point.to_dict()
        writer.writerow(["" if row[name] is None else row[name] for name in COLUMNS])


def _table(points: "Sequence[Point]", priced: bool) -> "Table":
    numbers = (
        "batch",
        "context",
        "chips",
        "accept",
        "µs",
        "× bound",
        "tokens/s",
        "each",
        "prompt ms",
        *("$/M",) * priced,
    )
    table = simple_table("target", *numbers, right=numbers)
    for point in points:
        row = [point.target, f"{point.batch}", "" if point.context is None else f"{point.context}"]
        if point.refused is not None:
            table.add_row(*row, "", f"{point.accept:g}", "refused")
            continue
        assert point.step_us is not None and point.prefill_estimate_us is not None
        ratio = "" if point.step_over_bound is None else f"{point.step_over_bound:.2f} {point.binding}"
        cells = [
            *row,
            f"{point.chips}",
            f"{point.accept:g}",
            f"{point.step_us:,.1f}",
            ratio,
            f"{point.tokens_per_s:,.0f}",
            f"{point.tokens_per_s_per_sequence:,.0f}",
            f"{point.prefill_estimate_us / 1e3:,.1f}",
        ]
        if priced:
            cells.append(f"{point.dollars_per_million_tokens:,.2f}")
        table.add_row(*cells)
    return table
