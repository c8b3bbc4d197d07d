"""`schedc inspect semaphores`: who gives to and takes from every semaphore."""

from schedc.cli.console import Json
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.table_options import TableOptions, print_table


def semaphores(
    model: Looked, options: ScheduleOptions, table: TableOptions, rows: Rows = None, json: Json = False
) -> None:
    """List the semaphores: who gives to each, who takes, and how long the core waits at it.

    Example:

      schedc inspect semaphores smollm2-135m --sort stall --reverse
    """
    from schedc.inspect.tables.semaphores import semaphores as rows_of

    print_table(rows_of(subject_of(model, options, rows)), table, json)
