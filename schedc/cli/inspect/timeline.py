"""`schedc inspect timeline`: the predicted step as a page, as a trace, or as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli import completion
from schedc.cli.console import Json, Stages, print_json
from schedc.cli.files import require_suffix, require_writable, written
from schedc.cli.inspect.opened import is_program, machine_for, refuse_window, subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.pictures import PAGES, PICTURES, require_matplotlib
from schedc.cli.planned import with_assumed
from schedc.cli.predict_options import PredictOptions
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.inspect.subject import Subject

TRACES = (".json", ".json.gz", ".pftrace")


def timeline(
    model: Looked,
    options: ScheduleOptions,
    assumed: PredictOptions,
    rows: Rows = None,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="A page (.html), a trace for Perfetto (.json, .json.gz, .pftrace) or a picture (.png, .svg, .pdf).",
        ),
    ] = Path("timeline.html"),
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL|FOLDER|FILE.ir|POLICY",
            autocompletion=completion.against,
            help="Beside it in the page: another folder, model or program, or the same model under another policy.",
        ),
    ] = None,
    start: Annotated[float, typer.Option("--from", help="First µs that is shown.")] = 0.0,
    end: Annotated[
        float | None, typer.Option("--to", help="Last µs that is shown.", show_default="the end of the step")
    ] = None,
    json: Json = False,
) -> None:
    """Show the predicted step: what the core does, where it waits, which transfers have the HBM, what VMEM holds.

    Cycles are those of --profile, else of the profile in the folder (of both folders), else of the table.

    Examples:

      schedc inspect timeline kimi-k3 --target tpu7x:2x2x4 --set slot_mib=4 -o k3.html

      schedc inspect timeline smollm2-135m --against just_in_time -o both.html

      schedc inspect timeline out/smollm2-135m -o trace.pftrace

      schedc inspect timeline examples/double_buffer.ir -o mine.html
    """
    kind = require_suffix(output, (*PAGES, *TRACES, *PICTURES), "what it is to be is told by its suffix:")
    if against is not None and kind not in PAGES:
        raise UserError(f"--against {against}: two schedules beside each other are shown in a page: -o NAME.html")
    if kind in TRACES and (start or end is not None):
        raise UserError(f"{output}: a trace has the whole step; --from and --to are for pages and pictures")
    if kind in PICTURES:
        require_matplotlib()
    require_writable(output)
    subject, assumed = subject_of(model, options, rows), with_assumed(assumed, options.plan)
    facts: dict[str, object] = {"output": str(output)}
    other = [] if against is None else [_other(against, options, rows, subject)]
    with written(output) as draft:
        if kind in PICTURES:
            facts |= _picture(subject, assumed, draft, start, end)
        elif kind in TRACES:
            facts |= _trace(subject, assumed, draft)
        else:
            facts |= _page([subject, *other], assumed, draft, start, end)
    if json:
        print_json(facts)
    else:
        named = ", ".join(f"{value:,} {name}" for name, value in facts.items() if isinstance(value, int))
        typer.echo(f"wrote {output}: step of {facts['step_us']:,.1f} µs{', ' if named else ''}{named}")


def _picture(
    subject: "Subject", assumed: PredictOptions, output: Path, start: float, end: float | None
) -> dict[str, object]:
    from schedc.cost.picture import draw
    from schedc.cost.simulate import simulate
    from schedc.inspect.history import title_of

    made = simulate(subject.program, machine_for([subject], assumed)[0], events=True, load=assumed.load())
    step = made.step_ns / 1e3
    refuse_window(start, end, step)
    last = step if end is None else end
    draw(made, output, start, last, f"{title_of(subject.program)}: step of {step:.1f} µs")
    return {"step_us": step, "from_us": start, "to_us": last}


def _trace(subject: "Subject", assumed: PredictOptions, output: Path) -> dict[str, object]:
    from schedc.inspect.seen import seen
    from schedc.inspect.tracks import tracks_of

    found = seen(subject, machine_for([subject], assumed)[0], assumed.load())
    tracks = tracks_of(found.history, found.sources, found.vmem)
    if output.suffix == ".pftrace":
        from schedc.inspect.perfetto_trace import write_perfetto_trace

        write_perfetto_trace(tracks, output)
    else:
        from schedc.inspect.chrome_trace import write_chrome_trace

        write_chrome_trace(tracks, output)
    step = found.history.timeline.step_ns / 1e3
    return {"step_us": step, "tracks": len(tracks.names), "slices": len(tracks.slices), "flows": len(tracks.flows)}


def _page(
    subjects: "Sequence[Subject]", assumed: PredictOptions, output: Path, start: float, end: float | None
) -> dict[str, object]:
    from schedc.inspect.html_page import page
    from schedc.inspect.seen import seen

    machines = machine_for(subjects, assumed)
    shown = [seen(one, machine, assumed.load()) for one, machine in zip(subjects, machines, strict=True)]
    refuse_window(start, end, max(one.history.timeline.step_ns for one in shown) / 1e3)
    text = page(shown, start, end)
    output.write_text(text, encoding="utf-8")
    return {"step_us": shown[0].history.timeline.step_ns / 1e3, "bytes": len(text.encode())}


def _other(text: str, options: ScheduleOptions, rows: int | None, first: "Subject") -> "Subject":
    """A folder, a model or a program; else the name of a policy for the same model, also that of a folder."""
    from dataclasses import replace

    from schedc.inspect.subject import ModelSubject, of_request
    from schedc.schedule.registry import POLICIES
    from schedc.spec.load import list_models

    if text in POLICIES or ".py:" in text:
        if not isinstance(first, ModelSubject):
            raise UserError(f"--against {text}: a policy makes another order of a model, not of a program; give a file")
        with Stages().stage("schedule"):
            return of_request(replace(first.request, policy=text, settings=None))
    if Path(text).is_dir() or is_program(text):
        return subject_of(text, ScheduleOptions(), None)
    if text not in list_models() and not Path(text).is_file():
        raise UserError(f"--against {text}: is no folder, no model and no policy; policies: {', '.join(POLICIES)}")
    return subject_of(text, options, rows)
