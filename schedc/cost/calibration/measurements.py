"""Rows of measurements: what was timed (a whole step, a phase, a collective, a copy) and what it took.

`published_measurements.csv` holds what the authors of a hand-written megakernel measured on TPU7x, with the place in
their report as `source`; rows `derived` are computed from theirs. `schedc bench` appends rows of the same form.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from schedc.errors import UserError

PUBLISHED = Path(__file__).with_name("published_measurements.csv")


@dataclass(frozen=True)
class Measurement:
    """One row, every column as it stands in the file."""

    model: str
    weights_format: str
    batch: str
    context: str
    devices: str
    metric: str
    value: str
    unit: str
    source: str

    @property
    def number(self) -> float:
        """The value; of a range `a-b` its middle."""
        low, dash, high = self.value.partition("-")
        return (float(low) + float(high)) / 2 if dash and low else float(self.value)


COLUMNS = tuple(field.name for field in fields(Measurement))


@cache
def measurements(path: Path = PUBLISHED) -> tuple[Measurement, ...]:
    """Raises UserError for a file without these columns, or with a value that is no number."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                found = ", ".join(reader.fieldnames or ()) or "none"
                raise UserError(f"{path}: the columns must be {', '.join(COLUMNS)}; found {found}")
            rows = []
            for number, record in enumerate(reader, start=2):
                if None in record or None in record.values():
                    raise UserError(f"{path}:{number}: must have {len(COLUMNS)} columns")
                rows.append(Measurement(**record))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    for number, row in enumerate(rows, start=2):
        try:
            row.number  # noqa: B018
        except ValueError:
            raise UserError(f"{path}:{number}: value {row.value!r} is no number") from None
    return tuple(rows)
