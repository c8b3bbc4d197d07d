"""Issue cycles of one execution of every operation of a program: what a simulation charges the core with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schedc.cost.operations import CycleTable
from schedc.ir.program import Barrier, Compute, Loop, Op, Phase, Program, walk
from schedc.ir.uses import mnemonic

_ISSUED = {"switch": "scalar", "case": "when"}
"""What stands in the table of cycles under another name: a selector is read as a scalar, and a case is guarded."""


@dataclass(frozen=True)
class Prices:
    """`cycles[n]` of operation n of `walk(program.body)`; of a loop, those of one trip; of a block, its own alone.

    `source` says who gave them, `notes` what is not known of them.
    """

    cycles: tuple[float, ...]
    source: str
    notes: tuple[str, ...] = ()


TABLE = "the table of operations"
"""What the formulas of `operations.yaml` are called, for a person."""


def table_prices(program: Program, table: CycleTable) -> Prices:
    """By the formulas of `operations.yaml`."""
    priced = [table_price(op, table, program.devices) for op in walk(program.body)]
    return Prices(tuple(cycles for cycles, _ in priced), TABLE, notes_of(note for _, note in priced))


def table_price(op: Op, table: CycleTable, devices: int) -> tuple[float, str | None]:
    """Cycles, and a note of what is not known of them."""
    match op:
        case Compute():
            return table.cycles(op)
        case Barrier():
            return (devices - 1) * table.issue("signal") + table.issue("wait"), None
        case Loop():
            return 0.0 if op.unroll else table.issue("loop"), None
        case Phase():
            return 0.0, None
        case _:
            return table.issue(_ISSUED.get(mnemonic(op), mnemonic(op))), None


def notes_of(notes: Iterable[str | None]) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(note for note in notes if note))
