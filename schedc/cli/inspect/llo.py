"""`schedc inspect llo`: what the TPU compiler made of a phase."""

from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli import completion
from schedc.cli.console import Json, Stages, print_json, print_whole, simple_table, to_stdout
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import ScheduleOptions

if TYPE_CHECKING:
    from rich.table import Table

    from schedc.inspect.llo import Llo, PhaseBundles


def llo(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", autocompletion=completion.models, help="A folder written by `schedc compile`."
        ),
    ],
    phase: Annotated[
        str | None,
        typer.Argument(
            metavar="[PHASE]",
            autocompletion=completion.phases,
            help="A phase, in detail.",
            show_default="a line a phase",
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--bundles", help="Print the bundles of the phase.")] = False,
    lines: Annotated[int, typer.Option("--lines", help="How many of the hottest lines to show.", min=1)] = 8,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds the TPU compiler may take.", min=1)] = 600,
    json: Json = False,
) -> None:
    """Show the TPU compiler's final bundles of the kernel: how full every unit is, what is empty, what is spilt.

    A bundle is an issue cycle; loop bodies count once, and what transfers and semaphores take is not in it. The share
    of a unit is that of its slots. After `schedc compile` has checked the folder its bundles are kept, and nothing is
    compiled again.

    Examples:

      schedc inspect llo out/smollm2-135m

      schedc inspect llo out/smollm2-135m attend --lines 3

      schedc inspect llo out/smollm2-135m qkv --bundles | less
    """
    from schedc.errors import UserError
    from schedc.inspect.llo import llo as bundles_of

    if listing and phase is None:
        raise UserError("--bundles prints those of one phase; name it")
    stages = Stages()
    subject = subject_of(folder, ScheduleOptions(), None)
    with stages.stage("TPU compiler") as say:
        made = bundles_of(subject, timeout, say, lines)
    shown = made.phases if phase is None else (made.phase(phase),)
    if json:
        print_json({"versions": dict(made.versions), "phases": [p.to_dict(made.units, made.chip) for p in shown]})
        return
    console = to_stdout()
    if listing:
        for bundle in shown[0].listing:
            typer.echo(f"{bundle.number:#8x}  {' ;; '.join(bundle.operations) or '(empty)'}")
        return
    print_whole(_phases(made, [*shown, made.whole()] if phase is None else list(shown)))
    if phase is not None:
        console.print()
        print_whole(_hottest(shown[0]))
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    console.print(f"{versions}; every loop body once", style="dim")


def _phases(made: "Llo", phases: "list[PhaseBundles]") -> "Table":
    units = [name for name in made.units.names if any(phase.operations[name] for phase in phases)]
    counted = [name for name in units if made.units.slots(name, made.chip) is None]
    shares = [name for name in units if name not in counted]
    right = ("bundles", "empty", *shares, *counted, "spills")
    table = simple_table("phase", *right, right=right)
    table.columns[0].no_wrap, table.columns[0].min_width = True, max(len(phase.phase) for phase in phases)
    for phase in phases:
        used = phase.utilisation(made.units, made.chip)
        table.add_row(
            phase.phase,
            f"{phase.bundles:,}",
            f"{phase.empty / phase.bundles:.0%}" if phase.bundles else "",
            *(f"{used[name] or 0:.0%}" for name in shares),
            *(f"{phase.operations[name]:,}" for name in counted),
            f"{phase.spill_loads + phase.spill_stores:,}",
        )
    return table


def _hottest(phase: "PhaseBundles") -> "Table":
    table = simple_table("line", "bundles", "empty", "mostly", "source", right=("line", "bundles", "empty"))
    for hot in phase.hottest:
        most = sorted(hot.operations.items(), key=lambda item: (-item[1], item[0]))[:3]
        mostly = ", ".join(f"{name} {count:,}" for name, count in most)
        table.add_row(f"{hot.line}", f"{hot.bundles:,}", f"{hot.empty:,}", mostly, hot.text)
    return table
