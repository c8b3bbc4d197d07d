"""What every subcommand prints with: tables on stdout, progress on stderr, JSON for programs."""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schedc.cli.piped import trimmed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]

PIPED_WIDTH = 120
_ENOUGH = 100_000
"""Columns that no table needs."""

Verbosity = Literal["quiet", "normal", "verbose"]

_verbosity: Verbosity = "normal"


def set_verbosity(verbosity: Verbosity) -> None:
    """Of this process: quiet shows no progress, verbose leaves a line for every stage."""
    global _verbosity
    _verbosity = verbosity


def shows_progress() -> bool:
    return _verbosity != "quiet"


def say_error(message: str) -> None:
    """`error: …` on stderr, red on a terminal unless NO_COLOR is set."""
    colour = None if os.environ.get("NO_COLOR") else "red"
    typer.secho("error: ", err=True, fg=colour, bold=colour is not None, nl=False)
    typer.echo(message, err=True)


def to_stdout() -> "Console":
    """Where there is no terminal, tables are 120 columns wide, and their lines end where their text does.

    Names are shown as they are, also `[bold]`.
    """
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False, markup=False, emoji=False)
    return Console(file=trimmed(sys.stdout), width=PIPED_WIDTH, highlight=False, markup=False, emoji=False)


def to_stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def for_source() -> "Console":
    """Records what is printed on it, for `export_html`, and shows nothing."""
    from io import StringIO

    from rich.console import Console

    return Console(record=True, file=StringIO(), width=400, highlight=False, markup=False, emoji=False)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_whole(drawn: "Table") -> None:
    """On stdout; where there is no terminal, as wide as it is, a row a line, for those that read it on."""
    console = to_stdout()
    if not console.is_terminal:
        console.width = _ENOUGH
        console.width = max(PIPED_WIDTH, console.measure(drawn).maximum)
    console.print(drawn)


def simple_table(*columns: str, right: Collection[str] = ()) -> "Table":
    """A table without borders; the columns named in `right` are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


def grid(rows: Iterable[tuple[str, str]]) -> "Table":
    """(label, value), a line each."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, value in rows:
        table.add_row(label, value)
    return table


class Stages:
    """The steps of a command: each has a spinner on a terminal while it lasts, and its seconds are kept."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._console = to_stderr()

    def say(self, text: str) -> None:
        """Print on stderr, as it is, above the spinner."""
        self._console.out(text, highlight=False)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[str], None]]:
        """Gives a function that tells the spinner what the step is at."""
        began = perf_counter()
        if _verbosity == "verbose":
            yield lambda detail: self.say(f"{name}: {detail}")
        elif _verbosity == "quiet":
            yield lambda detail: None
        else:
            with self._console.status(name) as status:
                yield lambda detail: status.update(f"{name}: {detail}")
        self.seconds[name] = round(perf_counter() - began, 3)
        if _verbosity == "verbose":
            self.say(f"{name}: {self.seconds[name]:.1f} s")
