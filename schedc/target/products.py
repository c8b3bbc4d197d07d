"""What it takes to multiply by weights in a format: the table of products.yaml, by chip.

A product is named by its format and its form: `mxfp4_block_diagonal`. Its function is in
backends/pallas/operations/products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from schedc.errors import SchedcError
from schedc.spec.base import Part
from schedc.target.chip import DtypeName
from schedc.target.target import Target
from schedc.validation import validate
from schedc.yaml_text import parse_yaml

PATH = Path(__file__).with_name("products.yaml")

EXACT_FORMS = ("direct", "dequantised", "recoded")
"""Forms that give the dequantised weights in the dtype of the left side: those that f32 rows take."""


class ProductCycles(Part):
    """Issue cycles of one product at the file's two sizes."""

    product: str
    rows: int = Field(gt=0)
    small: int = Field(gt=0)
    large: int = Field(gt=0)


class ProductsFile(Part):
    """`small` and `large` are (inputs, columns); `forms` by format and form what words must be reinterpreted as."""

    versions: str
    small: tuple[int, int] = Field(strict=False)
    large: tuple[int, int] = Field(strict=False)
    forms: dict[str, dict[str, list[DtypeName]]]
    chips: dict[str, list[ProductCycles]]


@dataclass(frozen=True)
class ProductTable:
    """The products that a chip can take. A chip that is not in the file has the cycles of its first one."""

    file: ProductsFile
    target: Target

    @classmethod
    def of(cls, target: Target) -> ProductTable:
        return cls(products_file(), target)

    @property
    def rows(self) -> list[ProductCycles]:
        chips = self.file.chips
        return chips.get(self.target.chip.name, next(iter(chips.values())))

    def lacks(self, stored: str, form: str) -> tuple[str, ...]:
        """What the chip cannot reinterpret words as, of what the form needs."""
        return tuple(n for n in self.file.forms[stored][form] if n not in self.target.capability.word_bitcasts)

    def usable(self, stored: str, dtype: str) -> tuple[str, ...]:
        """The forms that the chip can take with rows of `dtype`."""
        forms = (form for form in self.file.forms[stored] if not self.lacks(stored, form))
        return tuple(form for form in forms if dtype == "bf16" or form in EXACT_FORMS)

    def fastest(self, stored: str, rows: int, dtype: str) -> str | None:
        """The usable form that takes the fewest cycles for so many rows; None if there is none."""
        usable = self.usable(stored, dtype)
        return min(usable, key=lambda form: self._large(f"{stored}_{form}", rows), default=None)

    def measured(self, product: str, rows: int) -> ProductCycles | None:
        """The entry for so many rows: the next larger one where that number was not measured."""
        found = sorted((row for row in self.rows if row.product == product), key=lambda row: row.rows)
        return next((row for row in found if row.rows >= rows), None)

    def cycles_per_weight(self, product: str, rows: int) -> float | None:
        """The slope between the two sizes; None for a product that is not in the table."""
        entry = self.measured(product, rows)
        if entry is None:
            return None
        (k, n), (more_k, more_n) = self.file.small, self.file.large
        return (entry.large - entry.small) / (more_k * more_n - k * n)

    def _large(self, product: str, rows: int) -> float:
        entry = self.measured(product, rows)
        return float("inf") if entry is None else entry.large


@cache
def products_file() -> ProductsFile:
    file, faults = validate(ProductsFile, parse_yaml(PATH.read_text(encoding="utf-8")))
    if file is None:
        raise SchedcError("\n".join([f"{PATH.name}:", *(f"  {fault}" for fault in faults)]))
    return file
