"""`schedc inspect`: look at a compiled program. One file a subcommand."""

import typer

from schedc.cli.inspect.buffers import buffers
from schedc.cli.inspect.collectives import collectives
from schedc.cli.inspect.decisions import decisions
from schedc.cli.inspect.ir import ir
from schedc.cli.inspect.kernel import kernel
from schedc.cli.inspect.llo import llo
from schedc.cli.inspect.phases import phases
from schedc.cli.inspect.placement import placement
from schedc.cli.inspect.semaphores import semaphores
from schedc.cli.inspect.timeline import timeline
from schedc.cli.inspect.transfers import transfers
from schedc.cli.inspect.vmem import vmem
from schedc.cli.options import ScheduleOptions, with_options, with_schedule_options
from schedc.cli.predict_options import PredictOptions
from schedc.cli.table_options import TableOptions


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True,
        help="Look at a program: of a folder written by `schedc compile`, of a model, compiled on the fly, or in a "
        "file that you wrote (FILE.ir).",
    )
    for command in (ir, decisions, kernel):
        group.command()(with_schedule_options(command))
    for predicted in (timeline, vmem):
        group.command()(with_options(predicted, options=ScheduleOptions, assumed=PredictOptions))
    for table in (buffers, transfers, semaphores, phases, placement, collectives):
        group.command()(with_options(table, options=ScheduleOptions, table=TableOptions))
    group.command()(llo)
    app.add_typer(group, name="inspect")
