"""`schedc inspect phases`: where the time of a step goes."""

from schedc.cli.console import Json
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.table_options import TableOptions, print_table


def phases(model: Looked, options: ScheduleOptions, table: TableOptions, rows: Rows = None, json: Json = False) -> None:
    """List the phases of a step: time, waits, idle HBM, and what each waits for.

    Example:

      schedc inspect phases kimi-k3 --target tpu7x:2x2x4 --set slot_mib=4 --sort stall --reverse
    """
    from schedc.inspect.tables.phases import phases as rows_of

    print_table(rows_of(subject_of(model, options, rows)), table, json)
