"""`schedc diff`: what differs between two schedules, and what that changed."""

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import Json, Stages, print_json, simple_table, to_stdout
from schedc.cli.files import write_text
from schedc.cli.inspect.opened import is_program, subject_of
from schedc.cli.options import Looked, Rows, ScheduleOptions, with_schedule_options
from schedc.cli.pictures import require_page
from schedc.errors import UserError
from schedc.inspect.diff_text import figure, placed, places, sizes, us

if TYPE_CHECKING:
    from rich.console import Console

    from schedc.inspect.diff import BufferChange, Diff
    from schedc.inspect.subject import Subject

_MOST = 12


def register(app: typer.Typer) -> None:
    app.command()(with_schedule_options(diff))


def diff(
    first: Looked,
    second: Looked,
    options: ScheduleOptions,
    rows: Rows = None,
    of_first: Annotated[
        str, typer.Option("--a", metavar="OPTIONS", help="Options of the first model alone, as '--policy ring'.")
    ] = "",
    of_second: Annotated[
        str, typer.Option("--b", metavar="OPTIONS", help="Options of the second model alone, as '--set depth=4'.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All lines, not the largest changes alone.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE.html",
            help="Write a page too: both timelines below each other, what differs listed, what moved marked.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what differs between two compiled folders, or models with options, and what that changed.

    Where transfers are issued, the order of phases, rings and tiles, addresses; and the time by phase, VMEM and idle
    HBM that go with it: as a summary, and with --html in the page of `schedc inspect timeline`, which draws both.
    Exit code 0 whether they differ or not.

    Examples:

      schedc diff out/before out/after --html diff.html

      schedc diff smollm2-135m smollm2-135m --a '--policy just_in_time' --b '--policy ring --set depth=4' --html d.html

      schedc diff out/kimi-k3 kimi-k3 --b '--target tpu7x:2x2x4 --set slot_mib=4' --json
    """
    from schedc.inspect.diff import diff as difference

    if html is not None:
        require_page(html)
    if first == second == "-":
        raise UserError("-: stdin has one program; give the other one as a file")
    both = []
    for name, text, extra in (("--a", first, of_first), ("--b", second, of_second)):
        asked = _with(options, extra, name)
        whole = (Path(text).is_dir() or is_program(text)) and not extra
        both.append(subject_of(text, ScheduleOptions() if whole else asked, rows))
    with Stages().stage("compare"):
        found = difference(both[0], both[1])
    if html is not None:
        with Stages().stage("draw both"):
            write_text(html, _page(found, both[0], both[1]))
    if json:
        print_json(found.to_dict() | ({} if html is None else {"html": str(html)}))
        return
    _show(to_stdout(), found, every)
    if html is not None:
        typer.echo(f"\nwrote {html}")


def _page(found: "Diff", first: "Subject", second: "Subject") -> str:
    from schedc.inspect.diff import priced_alike
    from schedc.inspect.diff_data import diff_data
    from schedc.inspect.html_page import page
    from schedc.inspect.seen import seen

    machines = priced_alike(first, second)
    shown = [seen(one, machine) for one, machine in zip((first, second), machines, strict=True)]
    return page(shown, differs=diff_data(found, first.program, second.program))


def _with(shared: ScheduleOptions, text: str, option: str) -> ScheduleOptions:
    """The shared options, and those of one of the two on top. Raises UserError for what is no option."""
    if not text:
        return shared
    taken: list[ScheduleOptions] = []

    def keep(options: ScheduleOptions) -> None:
        taken.append(options)

    app = typer.Typer(add_completion=False, context_settings={"help_option_names": []})
    app.command()(with_schedule_options(keep))
    try:
        typer.main.get_command(app).main(shlex.split(text), prog_name=option, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message") and not isinstance(error, ValueError):
            raise
        said = error.format_message() if hasattr(error, "format_message") else str(error)
        raise UserError(f"{option} {text!r}: {said}") from None
    if not taken:
        raise UserError(f"{option} {text!r}: must be options such as --policy ring")
    own = {f.name: getattr(taken[0], f.name) for f in fields(taken[0]) if getattr(taken[0], f.name) != f.default}
    return replace(shared, **own)


def _show(console: "Console", found: "Diff", every: bool) -> None:
    if found.same_program:
        console.print("the same program")
    elif found.is_empty:
        console.print("the programs differ inside of phases alone, and not in any figure: compare their program.ir")
    for name, one, other in found.settings:
        console.print(f"{name}: {one or 'none'} -> {other or 'none'}", soft_wrap=True)
    _figures(console, found)
    _table(console, "phases", ("phase", "first µs", "second µs", "change", "stall"), [
        (p.phase, us(p.first_us), us(p.second_us), f"{p.change_us:+,.2f}",
         f"{p.second_stall_us - p.first_stall_us:+,.2f}")
        for p in sorted(found.phases, key=lambda p: -abs(p.change_us))
    ], every)  # fmt: skip
    if found.reordered:
        console.print(f"\nphases that stand elsewhere: {', '.join(found.reordered)}", soft_wrap=True)
    _table(console, "transfers issued elsewhere", ("transfer", "first", "second"), [
        (m.transfer, places(m.first), places(m.second)) for m in found.moved
    ], every)  # fmt: skip
    _table(console, "tiles", ("transfer", "first bytes", "second bytes"), [
        (t.transfer, sizes(t.first), sizes(t.second)) for t in found.tiled
    ], every)  # fmt: skip
    resized = [change for change in found.buffers if not change.only_address]
    _table(console, "buffers", ("buffer", "first", "second"), [
        (b.buffer, placed(b.first), placed(b.second)) for b in resized
    ], every)  # fmt: skip
    _addresses(console, [change for change in found.buffers if change.only_address], every)


def _figures(console: "Console", found: "Diff") -> None:
    if not found.figures:
        console.print("no figure of the prediction differs")
        return
    table = simple_table("", "first", "second", "change", "", right=("first", "second", "change"))
    for one in found.figures:
        table.add_row(*figure(one))
    console.print()
    console.print(table)


def _table(
    console: "Console", title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], every: bool
) -> None:
    if not rows:
        return
    numbers = [column for column in columns if column.endswith("µs") or column in ("change", "stall")]
    table = simple_table(*columns, right=numbers)
    for row in rows if every else rows[:_MOST]:
        table.add_row(*row)
    console.print(f"\n{title}", style="bold")
    console.print(table)
    if len(rows) > _MOST and not every:
        console.print(f"and {len(rows) - _MOST} more (--all)", style="dim")


def _addresses(console: "Console", changes: "list[BufferChange]", every: bool) -> None:
    if changes and not every:
        console.print(f"\n{len(changes)} buffers of the same size lie elsewhere (--all)")
    elif changes:
        rows = [(c.buffer, placed(c.first), placed(c.second)) for c in changes]
        _table(console, "addresses", ("buffer", "first", "second"), rows, True)
