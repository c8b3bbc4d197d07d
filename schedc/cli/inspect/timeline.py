"""`schedc inspect timeline`: the predicted step as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from schedc.cli.console import Json, print_json
from schedc.cli.inspect.opened import Rows, program_of
from schedc.cli.options import ModelOrFolder, ScheduleOptions


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

    text, _ = program_of(model, options, rows)
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
