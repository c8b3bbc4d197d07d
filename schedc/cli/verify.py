"""`schedc verify`: every check there is without a TPU."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli import completion
from schedc.cli.console import Json, Stages, grid, print_json, to_stdout
from schedc.cli.options import Model, Rows, ScheduleOptions, with_schedule_options
from schedc.errors import CheckFailed

if TYPE_CHECKING:
    from schedc.compiler.check import CheckReport
    from schedc.compiler.pipeline import Compiled


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(verify))


def verify(
    model: Model,
    options: ScheduleOptions,
    rows: Rows = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not ask the TPU compiler: the proof and the interpreter only.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds that the TPU compiler, and the interpreter, may take.", min=1)
    ] = 600,
    dump: Annotated[
        str | None,
        typer.Option(
            "--dump",
            metavar="PHASE",
            autocompletion=completion.dumped,
            help="Compare what this phase of the shrunk model (attend: of every kind of layer) leaves with the "
            "reference's values, first difference first; `all`: every phase, up to the first that differs.",
        ),
    ] = None,
    reproducer: Annotated[
        Path | None,
        typer.Option(
            "--reproducer", metavar="DIR", help="If something fails: a folder that shows it again and needs only jax."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check all that can be checked without a TPU: proof, TPU compiler, interpreter against the plain-JAX reference.

    A shrunk model with the same schedule is interpreted, with transfers performed as early and as late as they may be,
    memory that starts as NaN, and a race detector. Takes a minute or two.

    Examples:

      schedc verify qwen3-8b --rows 8

      schedc verify smollm2-135m --no-check --dump attend --reproducer fault
    """
    from schedc.cli.compile_view import proof_line
    from schedc.cli.dump_view import show_dump
    from schedc.compiler.dumped import dumped, phases_to_dump
    from schedc.compiler.interpret import verify_model
    from schedc.compiler.pipeline import compile_model
    from schedc.compiler.reproducer import refuse_used_folder
    from schedc.spec.load import load_spec

    stages = Stages()
    request = options.request(load_spec(model), rows)
    with stages.stage("schedule and prove"):
        compiled = compile_model(request)
    phases = () if dump is None else phases_to_dump(request, dump)
    if reproducer is not None:
        refuse_used_folder(reproducer)
    checked = None if no_check else _check(compiled, timeout, stages, reproducer)
    with stages.stage("interpret") as say:
        found = verify_model(request, say, timeout, phases, reproducer)
    compiler = None if checked is None else checked.to_dict()
    report: dict[str, Any] = {"proven": compiled.verdict.proven, "compiler": compiler, "interpreter": found.to_dict()}
    if phases:
        report["dump"] = dumped(found.telling, phases)
    problems = [*(checked.problems if checked else ()), *found.problems]
    if json and not problems:
        print_json(report)
    if not json:
        lines = [proof_line(compiled.verdict), *(checked.lines() if checked else ()), *found.lines()]
        to_stdout().print(grid(lines))
        if phases:
            show_dump(found.telling, phases)
    if problems:
        if reproducer is not None and found.problems:
            report["reproducer"] = str(reproducer)
        message = "\n".join([f"{request.spec.name}: {len(problems)} problems:", *(f"  {p}" for p in problems)])
        raise CheckFailed(message, problems=problems, details=report)


def _check(compiled: "Compiled", timeout: float, stages: Stages, reproducer: Path | None) -> "CheckReport":
    from schedc.compiler.check import check
    from schedc.compiler.output import KERNEL, write_program
    from schedc.compiler.reproducer import write_compile_reproducer

    with TemporaryDirectory(prefix="schedc-") as folder, stages.stage("TPU compiler") as say:
        write_program(compiled, Path(folder))
        try:
            return check(compiled, Path(folder) / KERNEL, timeout, say)
        except CheckFailed as failure:
            if reproducer is not None:
                target = compiled.request.target
                kernel = Path(folder) / KERNEL
                write_compile_reproducer(reproducer, kernel, target.topology_name, target.devices_used, str(failure))
            raise
