"""`schedc bench`: time a compiled kernel on TPUs, as rows that `schedc calibrate` reads."""

from pathlib import Path
from typing import Annotated

import typer

from schedc.cli.console import Json, print_json, to_stderr, to_stdout


def register(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    folder: Annotated[Path, typer.Argument(help="What `schedc compile` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file that the rows are appended to.")] = Path(
        "measurements.csv"
    ),
    position: Annotated[int, typer.Option("--position", help="Tokens in the cache when a call starts.", min=0)] = 225,
    steps: Annotated[int, typer.Option("--steps-per-call", help="Steps of the shorter calls.", min=1)] = 16,
    calls: Annotated[int, typer.Option("--calls", help="Pairs of calls that are timed.", min=1)] = 8,
    weights_file: Annotated[
        Path | None, typer.Option("--weights-file", help="As for run; random weights if it is not given.")
    ] = None,
    json: Json = False,
) -> None:
    """Time a compiled kernel on the TPUs of this machine and append rows to a file of measurements.

    All rows of the step decode the same token at the same position. The time of a step is without what a call costs.
    Exit code 1 where there is no TPU.

    Example:

      schedc bench out/smollm2-135m -o mine.csv && schedc calibrate --measurements mine.csv --kernel out/smollm2-135m
    """
    from schedc.calibrate.bench_rows import append_rows, rows_of
    from schedc.compiler.output import KERNEL, PROGRAM, read_output
    from schedc.errors import UserError
    from schedc.run.bench import require_tpu, time_steps
    from schedc.run.platform import require_devices, use_best
    from schedc.run.runnable import Runnable

    made = read_output(folder)
    shape, target = made.shape, made.target
    if shape.rows_are != "sequences":
        raise UserError(f"{folder}: its rows are {shape.rows_are}; only steps of sequences are timed")
    if position + 2 * steps > shape.context:
        raise UserError(
            f"position {position} and {2 * steps} steps go beyond the context of {shape.context}; "
            f"use --position {max(0, shape.context - 2 * steps)} or less"
        )
    require_tpu(shape.devices, target.chip.title)
    use_best(shape.devices)
    require_devices(shape.devices)
    with to_stderr().status("packing weights"):
        kernel = Runnable(made.read(KERNEL), made.spec, made.layouts, shape, int(made.manifest["kv_tokens"]))
        decoder, _ = kernel.decoder(_weights(weights_file, made.spec))
    with to_stderr().status("timing"):
        timing = time_steps(decoder, shape.rows, position, steps, calls)
    rows = rows_of(timing, made.spec, shape, made.read(PROGRAM), position)
    append_rows(output, rows)
    if json:
        print_json([row.__dict__ for row in rows])
    else:
        for row in rows:
            to_stdout().print(f"{row.metric}: {row.value} {row.unit}")
        to_stdout().print(f"appended to {output}")


def _weights(weights_file, spec):
    from schedc.weights.open import open_weights
    from schedc.weights.random_weights import RandomWeights

    return RandomWeights(spec, 0) if weights_file is None else open_weights(weights_file, spec)
