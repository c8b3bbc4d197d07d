"""The options that show the passes of a compilation, for the subcommands that have passes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from schedc.cli.console import simple_table, to_stderr
from schedc.errors import UserError

if TYPE_CHECKING:
    from schedc.compiler.passes import Watch

_PANEL = "Passes"


@dataclass(frozen=True)
class PassOptions:
    """What to show of the passes, on stderr."""

    print_after: Annotated[
        list[str] | None,
        typer.Option(
            "--print-after",
            metavar="PASS",
            help="Print the program after this pass, on stderr; may be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    verify_each: Annotated[
        bool,
        typer.Option(
            "--verify-each", help="Prove the program after every pass that makes one.", rich_help_panel=_PANEL
        ),
    ] = False
    time_passes: Annotated[
        bool, typer.Option("--time-passes", help="Print the seconds of every pass, on stderr.", rich_help_panel=_PANEL)
    ] = False

    @contextmanager
    def watch(self, passes: Sequence[str], say: Callable[[str], None]) -> "Iterator[Watch]":
        """`say` prints a program. Raises UserError for a pass that is none of `passes`. Times come at the end."""
        from schedc.compiler.passes import Watch
        from schedc.names import nearest

        asked = self.print_after or []
        for name in asked:
            if name not in passes:
                close = nearest(name, passes)
                hint = f"did you mean {' or '.join(close)}? " if close else ""
                raise UserError(f"--print-after {name}: no pass is called that; {hint}passes: {', '.join(passes)}")
        watch = Watch(frozenset(asked), self.verify_each, say)
        try:
            yield watch
        finally:
            if self.time_passes:
                _print_times(watch)


def _print_times(watch: "Watch") -> None:
    table = simple_table("pass", "seconds", "share", right=("seconds", "share"))
    whole = sum(watch.seconds.values())
    for name, seconds in watch.seconds.items():
        table.add_row(name, f"{seconds:.3f}", f"{100 * seconds / (whole or 1.0):.0f} %")
    table.add_row("total", f"{whole:.3f}", "100 %")
    to_stderr().print(table)
