"""`schedc verify`: run the kernel in the interpreter against the reference."""

from typing import Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, to_stdout
from schedc.cli.options import Model, ScheduleOptions, with_schedule_options
from schedc.errors import CheckFailed


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(verify))


def verify(
    model: Model,
    options: ScheduleOptions,
    rows: Annotated[int, typer.Option("--rows", help="Sequences decoded in one step, 1 to 16.")] = 1,
    json: Json = False,
) -> None:
    """Run a shrunk model with the same schedule in the interpreter, and compare it with the plain-JAX reference.

    Transfers are performed as early and as late as they may be, memory starts as NaN, and races are detected.

    Example:

      schedc verify qwen3-8b --rows 8
    """
    from rich.table import Table

    from schedc.compiler.interpret import verify_model
    from schedc.run.platform import use_cpu
    from schedc.spec.load import load_spec

    use_cpu()
    stages = Stages()
    request = options.request(load_spec(model), rows)
    with stages.stage("interpret") as say:
        report = verify_model(request, say)
    if json:
        print_json(report.to_dict())
    else:
        table = Table.grid(padding=(0, 2))
        for label, value in report.lines():
            table.add_row(label, value)
        to_stdout().print(table)
    if report.problems:
        raise CheckFailed(
            "\n".join([f"{request.spec.name}: the kernel is wrong:", *(f"  {problem}" for problem in report.problems)])
        )
