"""`schedc inspect kernel`: the generated source with what every line costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli import completion
from schedc.cli.console import Json, for_source, print_json, to_stdout
from schedc.cli.files import write_text
from schedc.cli.inspect.opened import subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions
from schedc.cli.pictures import require_page

if TYPE_CHECKING:
    from rich.text import Text

    from schedc.inspect.margin import Line, Margin

_WIDTHS = (22, 9, 7, 9, 9)
_HEADS = ("phase", "cycles", "times", "µs", "stall µs")


def kernel(
    model: Looked,
    options: ScheduleOptions,
    rows: Rows = None,
    phase: Annotated[
        str | None, typer.Option("--phase", autocompletion=completion.phases, help="Only the lines of this phase.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Also the lines before the kernel's own operations.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE.html", help="Write a page instead.")] = None,
    json: Json = False,
) -> None:
    """Print the generated kernel with phase, issue cycles, executions and predicted time beside every line.

    The cycles are those of the TPU compiler if the folder was checked by it, else of the table of operations; of one
    execution of a line, and at a phase's heading of the whole phase in the step. The time is that of all executions,
    `stall` the part of it in which the core waits.

    Examples:

      schedc inspect kernel out/smollm2-135m | less

      schedc inspect kernel out/smollm2-135m --phase attend --json
    """
    from schedc.inspect.margin import margin

    if html is not None:
        require_page(html)
    made = margin(subject_of(model, options, rows))
    if phase is not None:
        made = made.of_phase(phase)
    lines = made.lines if whole else _own(made)
    if json:
        found = [{name: value for name, value in vars(line).items() if name != "heading"} for line in lines]
        print_json({"priced_by": made.priced_by, "step_us": made.step_us, "lines": found})
        return
    texts = [_head(), *(_row(line) for line in lines)]
    if html is not None:
        write_text(html, _page(texts))
        typer.echo(f"wrote {html}: {len(lines)} lines")
        return
    console = to_stdout()
    for text in texts:
        console.print(text, soft_wrap=True)
    console.print(f"cycles by {made.priced_by}; step of {made.step_us:,.1f} µs", style="dim")


def _own(made: "Margin") -> "list[Line]":
    """From the first phase to the last."""
    numbers = [at for at, line in enumerate(made.lines) if line.phase]
    return list(made.lines[numbers[0] : numbers[-1] + 1]) if numbers else list(made.lines)


def _head() -> "Text":
    from rich.text import Text

    heads = " ".join(f"{head:<{w}}" if at == 0 else f"{head:>{w}}" for at, (head, w) in enumerate(_columns()))
    return Text(f"{heads}  {'line':>5}  source", style="bold")


def _columns() -> list[tuple[str, int]]:
    return list(zip(_HEADS, _WIDTHS, strict=True))


def _row(line: "Line") -> "Text":
    from rich.text import Text

    figures = (
        "" if line.cycles is None else f"{line.cycles:,.0f}",
        "" if not line.times else f"{line.times:,}",
        "" if not line.time_us else f"{line.time_us:,.2f}",
        "" if not line.stall_us else f"{line.stall_us:,.2f}",
    )
    right = " ".join(f"{figure:>{width}}" for figure, width in zip(figures, _WIDTHS[1:], strict=True))
    style = "bold cyan" if line.heading else "dim" if not line.time_us else ""
    margin = Text(f"{line.phase[: _WIDTHS[0]]:<{_WIDTHS[0]}} {right}", style=style)
    return Text.assemble(margin, (f"  {line.number:>5}  ", "dim"), (line.text, "bold" if line.heading else ""))


def _page(texts: "list[Text]") -> str:
    """One self-contained HTML page."""
    console = for_source()
    for text in texts:
        console.print(text, soft_wrap=True)
    return console.export_html(inline_styles=True)
