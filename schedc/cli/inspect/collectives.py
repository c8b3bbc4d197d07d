"""`schedc inspect collectives`: what devices send each other."""

from schedc.cli.console import Json
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.table_options import TableOptions, print_table


def collectives(
    model: Looked, options: ScheduleOptions, table: TableOptions, rows: Rows = None, json: Json = False
) -> None:
    """List the phases that send to other devices: how much, by which algorithm, and what is waited for.

    Example:

      schedc inspect collectives gpt-oss-120b --devices 8 --csv
    """
    from schedc.inspect.tables.collectives import collectives as rows_of

    print_table(rows_of(subject_of(model, options, rows)), table, json)
