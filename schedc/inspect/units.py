"""Which unit of the core executes an operation of a bundle: the table of units.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from schedc.errors import UserError
from schedc.spec.base import Part
from schedc.validation import validate
from schedc.yaml_text import parse_yaml

FILE = Path(__file__).with_name("units.yaml")
OTHER = "other"
"""Constants, addresses and other text that takes no slot."""

_MNEMONIC = re.compile(r"^(?:%\S+ = )?([a-zA-Z][\w.]*)")


class UnitEntry(Part):
    name: str
    what: str
    pattern: str
    slots: int | None = Field(gt=0)


class UnitsFile(Part):
    source: str
    chips: list[str]
    units: list[UnitEntry]


@dataclass(frozen=True)
class Units:
    """`slots` are known of some units and chips only."""

    entries: tuple[UnitEntry, ...]
    chips: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)

    def slots(self, name: str, chip: str) -> int | None:
        entry = next(entry for entry in self.entries if entry.name == name)
        return entry.slots if chip in self.chips else None

    def of(self, operation: str) -> str:
        """The unit of an operation as the bundles print it, `other` if it takes none."""
        found = _MNEMONIC.match(operation)
        return OTHER if found is None else _unit(self, found[1])


@cache
def _unit(units: Units, mnemonic: str) -> str:
    return next((entry.name for entry in units.entries if re.match(entry.pattern, mnemonic)), OTHER)


@cache
def units_table() -> Units:
    """Raises UserError for a damaged file."""
    file, faults = validate(UnitsFile, parse_yaml(FILE.read_text(encoding="utf-8")))
    if file is None:
        raise UserError("\n".join([f"{FILE}:", *(f"  {fault}" for fault in faults)]))
    return Units(tuple(file.units), tuple(file.chips))
