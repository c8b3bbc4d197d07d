"""`schedc inspect`: look at a compiled program."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli.console import Json, print_json, simple_table, to_stdout
from schedc.cli.options import ModelOrFolder, ScheduleOptions, compiled_folder, with_schedule_options
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.output import Output

Rows = Annotated[int, typer.Option("--rows", help="Sequences decoded in one step, 1 to 16.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True,
        help="Look at a compiled program: of a folder written by `schedc compile`, or of a model, compiled on the fly.",
    )
    for command in (ir, buffers, transfers, timeline, placement):
        group.command()(with_schedule_options(command))
    app.add_typer(group, name="inspect")


def ir(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """Print the program: storage with addresses, then every operation, one a line.

    Example:

      schedc inspect ir out/smollm2-135m | less
    """
    text, _ = _program(model, options, rows)
    if json:
        print_json({"program": text})
    else:
        typer.echo(text, nl=False)


def buffers(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """List the VMEM buffers: where each lies, and in which operations it is live.

    Example:

      schedc inspect buffers smollm2-135m --policy just_in_time
    """
    from schedc.cli.compile_view import buffer_table
    from schedc.ir.text_parse import parse_program

    text, manifest = _program(model, options, rows)
    if json:
        print_json(manifest["vmem"])
    else:
        to_stdout().print(buffer_table(parse_program(text)))


def timeline(
    model: ModelOrFolder,
    options: ScheduleOptions,
    rows: Rows = 1,
    output: Annotated[Path, typer.Option("-o", "--output", help="PNG, SVG or PDF, by its suffix.")] = Path(
        "timeline.png"
    ),
    start: Annotated[float, typer.Option("--from", help="First µs of the picture.")] = 0.0,
    end: Annotated[float | None, typer.Option("--to", help="Last µs; the whole step if not given.")] = None,
    json: Json = False,
) -> None:
    """Draw the predicted step: what the core does, where it waits, which transfers have the HBM.

    Example:

      schedc inspect timeline smollm2-135m --from 20 --to 40 -o timeline.svg
    """
    from schedc.cost.machine import Machine
    from schedc.cost.picture import draw
    from schedc.cost.simulate import simulate
    from schedc.ir.text_parse import parse_program
    from schedc.target.target import parse_target

    text, _ = _program(model, options, rows)
    program = parse_program(text)
    facts = dict(program.attributes)
    machine = Machine.of(parse_target(str(facts["target"]), program.devices))
    made = simulate(program, machine, events=True)
    last = made.step_ns / 1e3 if end is None else end
    title = f"{facts['model']}, rows {facts['rows']}, policy {facts['policy']}: step of {made.step_ns / 1e3:.1f} µs"
    draw(made, output, start, last, title)
    if json:
        print_json({"step_us": made.step_ns / 1e3, "from_us": start, "to_us": last, "picture": str(output)})
    else:
        typer.echo(f"wrote {output}: {start:g} to {last:g} µs of {made.step_ns / 1e3:.1f} µs")


def transfers(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """List the starts of transfers in program order, with their lines in kernel.py.

    Example:

      schedc inspect transfers out/smollm2-135m --json
    """
    _, manifest = _program(model, options, rows)
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


def placement(model: ModelOrFolder, options: ScheduleOptions, rows: Rows = 1, json: Json = False) -> None:
    """Say what each device holds: of every weight family, of the caches, and the bytes against its HBM.

    Nothing is compiled. The rules can be changed with --placement FILE.

    Examples:

      schedc inspect placement llama-3.1-8b --devices 8

      schedc inspect placement out/llama-3.1-8b --json
    """
    from schedc.cli.placement_view import placement_lines, placement_table
    from schedc.compiler.output import PROGRAM
    from schedc.compiler.placement import placement_report
    from schedc.ir.text_parse import parse_program
    from schedc.schedule.build import schedule
    from schedc.spec.load import load_spec
    from schedc.target.target import parse_target

    folder = compiled_folder(model, options)
    if folder is not None:
        _refuse_other_rows(folder, rows)
        target = parse_target(folder.manifest["target"], folder.shape.devices)
        arrays = parse_program(folder.read(PROGRAM)).arrays
        report = placement_report(folder.spec, folder.shape, target, folder.layouts, arrays)
    else:
        request = options.request(load_spec(model), rows)
        target = request.target
        made = schedule(request.spec, request.shape, target, request.policy, request.settings)
        report = placement_report(request.spec, request.shape, target, made.layouts, made.program.arrays)
    if json:
        print_json(report.to_dict())
        return
    to_stdout().print(target.describe())
    to_stdout().print(placement_table(report), soft_wrap=True)
    for line in placement_lines(report):
        to_stdout().print(line)


def _refuse_other_rows(folder: "Output", rows: int) -> None:
    given, compiled = rows != 1, folder.manifest["rows"]
    if given and rows != compiled:
        raise UserError(f"{folder.folder}: has been compiled for rows {compiled}; --rows cannot change that")


def _program(model: str, options: ScheduleOptions, rows: int) -> tuple[str, dict[str, Any]]:
    """The program's text and the manifest."""
    from schedc.compiler.manifest import manifest
    from schedc.compiler.output import PROGRAM
    from schedc.compiler.pipeline import compile_model
    from schedc.ir.text_print import print_program
    from schedc.spec.load import load_spec

    folder = compiled_folder(model, options)
    if folder is not None:
        _refuse_other_rows(folder, rows)
        return folder.read(PROGRAM), dict(folder.manifest)
    compiled = compile_model(options.request(load_spec(model), rows))
    return print_program(compiled.program), manifest(compiled)
