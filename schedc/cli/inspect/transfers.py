"""`schedc inspect transfers`: the starts of transfers, with their reasons."""

from typing import Annotated

import typer

from schedc.cli.console import Json
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.table_options import TableOptions, print_table


def transfers(
    model: Looked,
    options: ScheduleOptions,
    table: TableOptions,
    rows: Rows = None,
    each: Annotated[bool, typer.Option("--each", help="A row an execution, instead of one an operation.")] = False,
    json: Json = False,
) -> None:
    """List the starts of transfers in program order: how each fares, and why it stands where it stands.

    Times are predicted. `early` is the least time that it was there before it was needed, `stall` what the core waits
    for it in the whole step; `line` is that of program.ir, `kernel` that of kernel.py.

    Examples:

      schedc inspect transfers out/smollm2-135m --sort stall --reverse

      schedc inspect transfers kimi-k3-mini --where 'phase~expert' --where 'bytes>1e5' --columns line,phase,reason

      schedc inspect transfers smollm2-135m --each --csv > transfers.csv
    """
    from schedc.inspect.tables.transfers import executions
    from schedc.inspect.tables.transfers import transfers as operations

    subject = subject_of(model, options, rows)
    print_table(executions(subject) if each else operations(subject), table, json)
