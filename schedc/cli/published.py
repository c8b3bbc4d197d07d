"""`schedc published`: what hand-written kernels of others would take, under the same timeline as ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout
from schedc.cli.files import write_text
from schedc.cli.options import with_options
from schedc.cli.predict_options import PredictOptions
from schedc.cli.published_gains import OurOptions, show_gains
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.published.demand import Demand
    from schedc.published.predict import Prediction

DEFAULT_STEPS = ("1", "4", "8", "8v")


def register(app: typer.Typer) -> None:
    app.command()(with_options(published, assumed=PredictOptions, ours=OurOptions))


def published(
    assumed: PredictOptions,
    ours: OurOptions,
    name: Annotated[str, typer.Argument(help="A published schedule, or a file of that form.")] = "kimi-k3",
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            help="Rows of a step: `8` sequences, or `8v` consecutive tokens of one sequence to verify. Several may be "
            "given.",
            show_default="1, 4, 8, 8v",
        ),
    ] = None,
    context: Annotated[int, typer.Option("--context", help="Tokens that the cache is made for.")] = 2048,
    position: Annotated[
        int | None,
        typer.Option("--position", help="Tokens in the cache.", show_default="the middle of the context"),
    ] = None,
    gains: Annotated[
        bool,
        typer.Option("--gains", help="What another order is worth, then other exchanges, then our own schedule."),
    ] = False,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            help="Write the program of the first step to this file, for `schedc check`; with --gains the best one.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Predict a hand-written kernel that others published: its order, transfers and exchanges, by its measured cycles.

    The schedule is data (schedc/published/schedules) and becomes a program of the same form as ours, which
    `schedc check` proves. The device with most of the chosen experts sets the pace.

    Examples:

      schedc published kimi-k3

      schedc published kimi-k3 --step 8v --context 131072 --json

      schedc published kimi-k3 --step 1 --program k3.ir && schedc check k3.ir

      schedc published kimi-k3 --gains --policy ring --set slot_mib=4 --wire bf16
    """
    from schedc.ir.text_print import print_program
    from schedc.published.predict import machine_of, predict_published, program_for
    from schedc.published.read import load_published

    schedule = load_published(name)
    demands = [_demand(step, context, position) for step in steps or DEFAULT_STEPS]
    if gains:
        best = show_gains(name, demands, assumed, ours, json)
    else:
        best, machine, load = schedule, machine_of(schedule, assumed.machine), assumed.load()
        found = [predict_published(schedule, demand, machine, load) for demand in demands]
        if json:
            print_json([prediction.to_dict() for prediction in found])
        else:
            typer.echo(
                f"{schedule.title}, {found[0].clock_mhz:,.0f} MHz; context {context}, position {found[0].position}\n"
            )
            show_steps(found)
            typer.echo(f"\n{found[0].step}, by phase\n")
            show_phases(found[0])
    if program is not None:
        write_text(program, print_program(program_for(best, demands[0])))


def _demand(step: str, context: int, position: int | None) -> "Demand":
    from schedc.published.demand import Demand

    number = step.removesuffix("v")
    if not number.isdigit():
        raise UserError(f"--step {step}: a number of rows, with a v for rows to verify, as in 8 and 8v")
    return Demand(int(number), step.endswith("v"), context, position)


COLUMNS: tuple[tuple[str, Any], ...] = (
    ("µs", lambda p: f"{p.step_us:,.0f}"),
    ("even experts", lambda p: f"{p.even_us:,.0f}"),
    ("experts", lambda p: f"{p.experts:.1f}"),
    ("compute", lambda p: f"{p.compute_us:,.0f}"),
    ("HBM waits", lambda p: f"{p.transfer_us:,.0f}"),
    ("exchange waits", lambda p: f"{p.exchange_us:,.0f}"),
    ("HBM idle", lambda p: f"{p.hbm_idle_us:,.0f}"),
    ("bound", lambda p: f"{p.largest_bound[1]:,.0f} {p.largest_bound[0]}"),
    ("over", lambda p: f"{p.step_us / p.largest_bound[1]:.2f}"),
)


def show_steps(found: "list[Prediction]") -> None:
    """`even experts`: if every device had its mean; `experts`: of the slowest device, a layer."""
    table = simple_table("step", *(name for name, _ in COLUMNS), right=[name for name, _ in COLUMNS])
    for prediction in found:
        table.add_row(prediction.step, *(text(prediction) for _, text in COLUMNS))
    to_stdout().print(table)


def show_phases(prediction: "Prediction") -> None:
    columns = ("times", "cycles", "µs", "HBM waits", "exchange waits", "HBM idle")
    table = simple_table("phase", *columns, right=columns)
    for phase in prediction.phases:
        table.add_row(
            phase.name,
            f"{phase.executions:.0f}",
            f"{phase.cycles:,.0f}",
            f"{phase.time_us:,.1f}",
            f"{phase.stall_us - phase.exchange_us:,.1f}",
            f"{phase.exchange_us:,.1f}",
            f"{phase.hbm_idle_us:,.1f}",
        )
    to_stdout().print(table)
