"""`schedc check`: prove a program that was written by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, Stages, grid, print_json, to_stdout
from schedc.cli.files import write_text
from schedc.cli.options import with_options
from schedc.cli.pass_options import PassOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.written import Proven

ProgramFile = Annotated[
    str,
    typer.Argument(metavar="FILE.ir", help="A program in the text form, docs/text_form.md; `-` reads stdin."),
]
ProgramTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Chip and topology, as in tpu7x:2x2x1; or a chip file of your own.",
        show_default="that of the program's attribute `target`, else tpu7x:2x2x1",
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(with_options(check, passes=PassOptions))


def check(
    file: ProgramFile,
    passes: PassOptions,
    target: ProgramTarget = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the program with its addresses to this file.")
    ] = None,
    json: Json = False,
) -> None:
    """Prove an order that you wrote by hand: no timing of its transfers can make it go wrong, and it fits the chip.

    Buffers without an address get one. Every refusal names its line and column, the operations and the smallest repair.

    Examples:

      schedc check examples/double_buffer.ir

      schedc inspect ir smollm2-135m > mine.ir && schedc check mine.ir

      schedc check mine.ir --target v6e -o allocated.ir --json
    """
    from schedc.compiler.passes import CHECK_PASSES
    from schedc.compiler.written import check_source, read_source, target_of
    from schedc.ir.text_print import print_program

    if output is not None and output.name in ("", "-"):
        raise UserError(f"--output {str(output)!r} names no file")
    stages = Stages()
    with passes.watch(CHECK_PASSES, stages.say) as watch, stages.stage("prove"):
        with watch.timed("parse"):
            source = read_source(file)
        proven = check_source(source, target_of(source, target), watch)
    if output is not None:
        write_text(output, print_program(proven.program))
    if json:
        print_json(report(proven) | {"output": None if output is None else str(output)})
    else:
        _show(proven)
        if output is not None:
            typer.echo(f"\nwrote {output}")


def report(proven: "Proven") -> dict[str, Any]:
    """What `--json` says of a program; `proven` is None if the proof was not asked."""
    from dataclasses import asdict

    from schedc.compiler.pipeline import limits_of
    from schedc.ir.program import ROW_BYTES

    program, limits = proven.program, limits_of(proven.target)
    pools = {pool.name: limits.pool_bytes(pool.rows) for pool in program.pools}
    statistics = None if proven.verdict is None else asdict(proven.verdict.statistics)
    if statistics is not None:
        statistics["peak_bytes"] = statistics["peak_rows"] * ROW_BYTES
    return {
        "program": program.name,
        "target": proven.target.describe(),
        "devices": program.devices,
        "proven": None if proven.verdict is None else proven.verdict.proven,
        "refusals": [],
        "proof": statistics,
        "vmem": {"peak_bytes": sum(pools.values()), "limit_bytes": limits.vmem_bytes, "pools": pools},
        "smem": {
            "bytes": sum(-(-s.length * 4 // limits.smem_granule) * limits.smem_granule for s in program.scalars),
            "limit_bytes": limits.smem_bytes,
        },
        "semaphores": {
            "count": sum(s.count for s in program.semaphores) + limits.added_semaphores(program),
            "limit": limits.semaphores,
        },
        "buffers": {buffer.name: {"pool": buffer.pool, "address": buffer.address} for buffer in program.buffers},
    }


def _show(proven: "Proven") -> None:
    from schedc.cli.compile_view import buffer_table, proof_line, vmem_line

    console, found = to_stdout(), report(proven)
    assert proven.verdict is not None
    typer.echo(f"{proven.source.name}: proven safe on {found['target']}\n")
    console.print(vmem_line(proven.program, found["vmem"]["limit_bytes"]))
    console.print(buffer_table(proven.program))
    console.print()
    smem, semaphores = found["smem"], found["semaphores"]
    console.print(
        grid(
            [
                proof_line(proven.verdict),
                ("SMEM", f"{smem['bytes']:,} of {smem['limit_bytes']:,} bytes"),
                ("semaphores", f"{semaphores['count']} of {semaphores['limit']}"),
            ]
        )
    )
