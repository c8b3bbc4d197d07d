"""A table as data: columns with units, rows of plain values; sorted, filtered, and written as text for programs."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from schedc.errors import UserError

Value = str | int | float | bool | None
"""None: there is no such value in this row."""


@dataclass(frozen=True)
class Column:
    """`unit` is part of the heading, and so is what a count is of (`each`: of one execution, `a step`: of all of them);
    `digits` are those behind the point that a person sees."""

    name: str
    unit: str = ""
    digits: int = 0
    words: bool = False
    """A sentence: shown last and broken over lines."""


@dataclass(frozen=True)
class Table:
    """Every row has a value a column."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    """The columns that a person is shown, if not all."""

    def index(self, name: str) -> int:
        """Raises UserError that names the columns."""
        names = [column.name for column in self.columns]
        if name in names:
            return names.index(name)
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(f"{self.title} has no column {name!r}; {hint}there are {', '.join(names)}")

    def sorted_by(self, name: str, reverse: bool = False) -> Table:
        """Rows without a value come last. Equal rows stay in their order."""
        at = self.index(name)
        there = [row for row in self.rows if row[at] is not None]
        there.sort(key=lambda row: _order(row[at]), reverse=reverse)
        return replace(self, rows=(*there, *(row for row in self.rows if row[at] is None)))

    def where(self, condition: str) -> Table:
        """The rows for which `column~regex`, `column=value`, `column>number` and so on hold."""
        holds = _condition(self, condition)
        return replace(self, rows=tuple(row for row in self.rows if holds(row)))

    def only(self, names: Sequence[str]) -> Table:
        """These columns, in this order."""
        places = [self.index(name) for name in names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(f"--columns: {', '.join(twice)} is named twice")
        rows = tuple(tuple(row[at] for at in places) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in places), rows=rows, brief=())

    def to_dict(self) -> dict[str, Any]:
        names = [column.name for column in self.columns]
        return {
            "title": self.title,
            "columns": [{"name": column.name, "unit": column.unit or None} for column in self.columns],
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
            "notes": list(self.notes),
        }

    def to_csv(self) -> str:
        """With a line of names; the units are those of `to_dict`."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([["" if value is None else value for value in row] for row in self.rows])
        return text.getvalue()


def shown(value: Value, column: Column) -> str:
    """As a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.{column.digits}f}"
    return f"{value:,}" if isinstance(value, int) else value


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_CONDITION = re.compile(r"\s*([A-Za-z_][\w]*)\s*(!=|!~|<=|>=|~|=|<|>)\s*(.*?)\s*$")
_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _condition(table: Table, text: str) -> Callable[[tuple[Value, ...]], bool]:
    """Raises UserError for what is no condition."""
    found = _CONDITION.match(text)
    if found is None:
        raise UserError(f"--where {text}: must be like phase~attend, phase=qkv or bytes>1e6 (also != !~ < <= >=)")
    name, sign, wanted = found.groups()
    at = table.index(name)
    if sign in ("~", "!~"):
        try:
            pattern = re.compile(wanted)
        except re.error as error:
            raise UserError(f"--where {text}: {wanted!r} is no regular expression: {error}") from None
        return lambda row: bool(pattern.search(_text(row[at]))) == (sign == "~")
    numeric = any(is_number(row[at]) for row in table.rows)
    if not numeric:
        if sign not in ("=", "!="):
            raise UserError(f"--where {text}: {name} is text, which is compared with =, !=, ~ or !~")
        return lambda row: (_text(row[at]) == wanted) == (sign == "=")
    try:
        number = float(wanted.replace("_", ""))
        if math.isnan(number):
            raise ValueError
    except ValueError:
        raise UserError(f"--where {text}: {name} is a number, {wanted!r} is none") from None
    compare = _NUMERIC[sign]

    def holds(row: tuple[Value, ...]) -> bool:
        value = row[at]
        return isinstance(value, (int, float)) and compare(float(value), number)

    return holds


def _text(value: Value) -> str:
    return "" if value is None else str(value)


def _order(value: Value) -> tuple[int, float, str]:
    """Numbers before text."""
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value))
