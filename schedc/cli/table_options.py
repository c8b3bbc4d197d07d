"""Options of the subcommands that print a table, and how it is printed."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schedc.cli import completion
from schedc.cli.console import print_json, print_whole, simple_table, to_stdout
from schedc.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from schedc.inspect.table import Table

_PANEL = "Table"
ALL = "all"


def _option(*names: str, help: str, **settings: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **settings)


@dataclass(frozen=True)
class TableOptions:
    """Which rows and columns of a table, in which order, and as what."""

    sort: Annotated[
        str | None,
        _option(
            "--sort",
            metavar="COLUMN",
            autocompletion=completion.column,
            help="Sort by a column; the first is smallest.",
        ),
    ] = None
    reverse: Annotated[bool, _option("--reverse", help="The largest first.")] = False
    where: Annotated[
        list[str] | None,
        _option(
            "--where",
            metavar="CONDITION",
            autocompletion=completion.column,
            help="Only rows with, as in 'phase~expert' (a regular expression), 'phase=qkv' or 'bytes>1e6'; may be "
            "repeated.",
        ),
    ] = None
    columns: Annotated[
        str | None,
        _option(
            "--columns",
            metavar="NAMES",
            autocompletion=completion.column_list,
            help="Only these columns, as in phase,bytes,reason; or `all`.",
            show_default="all for --json and --csv, else what a screen has room for",
        ),
    ] = None
    csv: Annotated[bool, _option("--csv", help="Print CSV with a line of column names.")] = False

    def of(self, table: "Table") -> "Table":
        """The rows and columns that are asked for. Raises UserError for unknown columns and bad conditions."""
        for condition in self.where or ():
            table = table.where(condition)
        if self.sort is not None:
            table = table.sorted_by(self.sort, self.reverse)
        elif self.reverse:
            raise UserError("--reverse needs --sort COLUMN")
        if self.columns is not None and self.columns != ALL:
            table = table.only([name.strip() for name in self.columns.split(",")])
        return table

    def given(self) -> list[str]:
        return [f"--{field.name}" for field in fields(self) if getattr(self, field.name) != field.default]


def print_table(table: "Table", options: TableOptions, json: bool) -> None:
    """As JSON, as CSV, or for a person. Raises UserError for bad options."""
    if json and options.csv:
        raise UserError("--json and --csv: give one of them")
    chosen = options.of(table)
    if json:
        print_json(chosen.to_dict())
        return
    if options.csv:
        typer.echo(chosen.to_csv(), nl=False)
        return
    if chosen.brief and options.columns is None:
        chosen = chosen.only(chosen.brief)
    print_whole(rich_table(chosen))
    console = to_stdout()
    for note in chosen.notes:
        console.print(note, style="dim")


def rich_table(table: "Table") -> "RichTable":
    """Numbers are right-aligned; sentences are broken over lines where there is no room."""
    from schedc.inspect.table import is_number, shown

    numbers = {column.name for at, column in enumerate(table.columns) if any(is_number(row[at]) for row in table.rows)}
    headings = [f"{column.name}{f' {column.unit}' if column.unit else ''}" for column in table.columns]
    right = [heading for heading, column in zip(headings, table.columns, strict=True) if column.name in numbers]
    made = simple_table(*headings, right=right)
    for column, drawn in zip(table.columns, made.columns, strict=True):
        if column.words:
            drawn.min_width = 30
        else:
            drawn.no_wrap = True
    for row in table.rows:
        made.add_row(*(shown(value, column) for value, column in zip(row, table.columns, strict=True)))
    return made
