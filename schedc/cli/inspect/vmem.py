"""`schedc inspect vmem`: VMEM as a map, addresses against time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, print_json
from schedc.cli.files import written
from schedc.cli.inspect.opened import is_program, machine_for, refuse_window, subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions, compiled_folder
from schedc.cli.pictures import require_picture
from schedc.cli.planned import with_assumed
from schedc.cli.predict_options import PredictOptions
from schedc.errors import CheckFailed, UserError

if TYPE_CHECKING:
    from schedc.inspect.seen import Seen
    from schedc.inspect.vmem_map import VmemMap


def vmem(
    model: Looked,
    options: ScheduleOptions,
    assumed: PredictOptions,
    rows: Rows = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="SVG, PNG or PDF, by its suffix.", show_default="as text, here"),
    ] = None,
    start: Annotated[float, typer.Option("--from", help="First µs of the picture.")] = 0.0,
    end: Annotated[float | None, typer.Option("--to", help="Last µs; the whole step if not given.")] = None,
    json: Json = False,
) -> None:
    """Show what lies where in VMEM, and when: live buffers, slots on their way or to be read, the peak and the slack.

    A schedule that does not fit is shown as it would lie in a larger VMEM, with the buffers that clash; the exit code
    is then 1.

    Examples:

      schedc inspect vmem smollm2-135m

      schedc inspect vmem out/kimi-k3 --from 100 --to 200 -o vmem.svg
    """
    if output is None and (start or end is not None):
        raise UserError("--from and --to are for a picture: give it with -o NAME.svg")
    if output is not None:
        require_picture(output, "a map of VMEM is written as")
    found, failure = _seen(model, options, assumed, rows)
    if output is not None:
        from schedc.inspect.vmem_picture import draw_vmem

        refuse_window(start, end, found.vmem.step_ns / 1e3)
        with written(output) as draft:
            draw_vmem(found.vmem, draft, found.history.title, start, end)
    facts = _facts(found.vmem) | ({"picture": str(output)} if output else {}) if json else {}
    if failure is not None and json:
        raise CheckFailed(str(failure), problems=failure.problems, details=failure.details | facts)
    if json:
        print_json(facts)
    elif output is not None:
        typer.echo(f"wrote {output}")
    else:
        from schedc.inspect.vmem_text import vmem_lines

        typer.echo("\n".join(vmem_lines(found.vmem, found.history.title)))
    if failure is not None:
        raise failure


def _seen(
    model: str, options: ScheduleOptions, assumed: PredictOptions, rows: int | None
) -> "tuple[Seen, CheckFailed | None]":
    """What there is to see, and the error if it does not fit."""
    from schedc.inspect.seen import refused, seen, seen_too_large
    from schedc.spec.load import load_spec

    try:
        subject, assumed = subject_of(model, options, rows), with_assumed(assumed, options.plan)
        return seen(subject, machine_for([subject], assumed)[0], assumed.load()), None
    except CheckFailed as failure:
        if is_program(model) or compiled_folder(model, options) is not None:
            raise
        request = options.request(load_spec(model), rows)
        refusal = refused(request)
        if refusal is None:
            raise
        return seen_too_large(request, refusal), failure


def _facts(vmem: "VmemMap") -> dict[str, object]:
    from schedc.ir.program import ROW_BYTES

    return {
        "step_us": vmem.step_ns / 1e3,
        "limit_bytes": vmem.limit_rows * ROW_BYTES,
        "pools": {name: {"first_row": first, "rows": rows} for name, first, rows in vmem.pools},
        "peak_bytes": vmem.peak_rows * ROW_BYTES,
        "peak_us": vmem.peak_ns / 1e3,
        "slack_bytes": vmem.slack_rows * ROW_BYTES,
        "compiler_bytes": dict(vmem.compiler),
        "at_peak": {buffer.name: rows * ROW_BYTES for buffer, rows in vmem.at_peak()},
        "clash": list(vmem.clash),
        "rectangles": [
            {
                "buffer": rect.buffer,
                "kind": rect.kind,
                "slot": rect.slot,
                "row": rect.row,
                "rows": rect.rows,
                "from_us": rect.began / 1e3,
                "to_us": rect.ended / 1e3,
            }
            for rect in vmem.rects
        ],
    }
