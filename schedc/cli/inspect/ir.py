"""`schedc inspect ir`: the program as text."""

import typer

from schedc.cli.console import Json, print_json
from schedc.cli.inspect.opened import program_of
from schedc.cli.options import Looked, Rows, ScheduleOptions


def ir(model: Looked, options: ScheduleOptions, rows: Rows = None, json: Json = False) -> None:
    """Print the program: storage with addresses, then every operation, one a line.

    Example:

      schedc inspect ir out/smollm2-135m | less
    """
    text, _ = program_of(model, options, rows)
    if json:
        print_json({"program": text})
    else:
        typer.echo(text, nl=False)
