"""`schedc inspect transfers`: the starts of transfers in program order."""

from schedc.cli.console import Json, print_json, simple_table, to_stdout
from schedc.cli.inspect.opened import Rows, program_of
from schedc.cli.options import ModelOrFolder, ScheduleOptions


def transfers(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """List the starts of transfers in program order, with their lines in kernel.py.

    Example:

      schedc inspect transfers out/smollm2-135m --json
    """
    _, manifest = program_of(model, options, rows)
    if json:
        print_json(manifest["transfers"])
        return
    table = simple_table("line", "phase", "rows", "KiB", "operation", right=("line", "rows", "KiB"))
    for transfer in manifest["transfers"]:
        size = transfer["rows"] * manifest["vmem"]["row_bytes"] / 1024
        table.add_row(
            str(transfer["line"]), transfer["phase"], str(transfer["rows"]), f"{size:,.1f}", transfer["operation"]
        )
    to_stdout().print(table, soft_wrap=True)
