"""The committed table: one row a case and a line of jax, as CSV for programs and as Markdown for readers."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "table.csv"
PAGE = ROOT / "docs" / "full_size.md"


Key = tuple[str, int, int, str]
"""Case, rows, context, jax."""


@dataclass(frozen=True)
class Row:
    """What became of one case. Bytes and seconds; `issue_cycles` count every loop body once."""

    case: str
    target: str
    devices: int
    rows: int
    context: int
    jax: str
    libtpu: str
    program: str
    """`program_hash` of the case."""
    vmem_bytes: int
    """Of everything, the compiler's spills included."""
    spill_bytes: int
    vmem_limit_bytes: int
    code_bytes: int
    issue_cycles: int
    prove_seconds: float
    compile_seconds: float
    """Of the TPU compiler, lowering included."""
    step_us: float
    """As the simulation predicts it."""

    @property
    def key(self) -> Key:
        return self.case, self.rows, self.context, self.jax


def read_table(path: Path = TABLE) -> list[Row]:
    if not path.exists():
        return []
    types = {field.name: {"int": int, "float": float}.get(str(field.type), str) for field in fields(Row)}
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{name: types[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def write_table(rows: Iterable[Row], path: Path = TABLE, page: Path = PAGE) -> None:
    """Both forms, in the order given; each file is replaced whole."""
    rows = list(rows)
    draft = path.with_name(f".{path.name}")
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    draft.replace(path)
    page.write_text(as_page(rows), encoding="utf-8")


HEADER = """\
# Full-size models through the TPU compiler

Made by `python -m benchmarks.full_size`, ahead of time, without a TPU. VMEM is what the compiler allocates, its
register spills included; cycles are issue cycles with every loop body once; the step time is the simulation's
prediction, not a measurement. A test fails when a program no longer is the one its row was measured of.

| model | target, devices | rows × context | jax, libtpu | VMEM MiB of limit | spills KiB | code MB | issue cycles \
| proof s | compiler s | step µs (predicted) | program |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def as_page(rows: Iterable[Row]) -> str:
    """The page of the docs."""
    return HEADER + "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        f"{row.target}, {row.devices}",
        f"{row.rows} × {row.context}",
        f"{row.jax}, {row.libtpu}",
        f"{row.vmem_bytes / 2**20:.2f} of {row.vmem_limit_bytes / 2**20:.2f}",
        f"{row.spill_bytes / 2**10:.0f}",
        f"{row.code_bytes / 1e6:.2f}",
        f"{row.issue_cycles:,}",
        f"{row.prove_seconds:.1f}",
        f"{row.compile_seconds:.1f}",
        f"{row.step_us:,.0f}",
        f"`{row.program[:12]}`",
    )
