"""`schedc inspect`: look at a compiled program. One file a subcommand."""

import typer

from schedc.cli.inspect.buffers import buffers
from schedc.cli.inspect.ir import ir
from schedc.cli.inspect.placement import placement
from schedc.cli.inspect.timeline import timeline
from schedc.cli.inspect.transfers import transfers
from schedc.cli.options import with_schedule_options


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True,
        help="Look at a compiled program: of a folder written by `schedc compile`, or of a model, compiled on the fly.",
    )
    for command in (ir, buffers, transfers, timeline, placement):
        group.command()(with_schedule_options(command))
    app.add_typer(group, name="inspect")
