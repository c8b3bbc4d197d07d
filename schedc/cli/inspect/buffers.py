"""`schedc inspect buffers`: where every VMEM buffer lies."""

from schedc.cli.console import Json
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.table_options import TableOptions, print_table


def buffers(
    model: Looked, options: ScheduleOptions, table: TableOptions, rows: Rows = None, json: Json = False
) -> None:
    """List the VMEM buffers: where each lies, from which phase to which it is live, and why.

    Examples:

      schedc inspect buffers smollm2-135m --policy just_in_time

      schedc inspect buffers out/gpt-oss-120b --sort bytes --reverse --where pool=work
    """
    from schedc.inspect.tables.buffers import buffers as rows_of

    print_table(rows_of(subject_of(model, options, rows)), table, json)
