"""`schedc inspect buffers`: where every VMEM buffer lies."""

from schedc.cli.console import Json, print_json, to_stdout
from schedc.cli.inspect.opened import Rows, program_of
from schedc.cli.options import ModelOrFolder, ScheduleOptions


def buffers(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """List the VMEM buffers: where each lies, and in which operations it is live.

    Example:

      schedc inspect buffers smollm2-135m --policy just_in_time
    """
    from schedc.cli.compile_view import buffer_table
    from schedc.ir.text_parse import parse_program

    text, manifest = program_of(model, options, rows)
    if json:
        print_json(manifest["vmem"])
    else:
        to_stdout().print(buffer_table(parse_program(text)))
