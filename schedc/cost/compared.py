"""Cycles of a step by kind of operation: a profile's beside the table's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from schedc.cost.executions import executions
from schedc.cost.operations import CycleTable
from schedc.cost.prices import table_prices
from schedc.cost.profile import Profile
from schedc.ir.program import Compute, Phase, Program, walk


@dataclass(frozen=True)
class KindCycles:
    """A kind of operation in a step: `places` in the program, executed `times`, and its cycles in all.

    A trip of a loop has the drain of its last computation in the compiler's cycles, the computation in the table's.
    """

    name: str
    places: int
    times: int
    cycles: int
    by_table: int

    @property
    def table_over_profile(self) -> float | None:
        return round(self.by_table / self.cycles, 3) if self.cycles else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"table_over_profile": self.table_over_profile}


def cycles_by_kind(program: Program, profile: Profile, table: CycleTable) -> list[KindCycles]:
    """Dearest first."""
    own, fitted = profile.priced(program, table).cycles, table_prices(program, table).cycles
    times_of = executions(program, copies=True)
    found: dict[str, list[float]] = {}
    for op, times, cycles, by_table in zip(walk(program.body), times_of, own, fitted, strict=True):
        if isinstance(op, Phase):
            continue
        name = op.kind if isinstance(op, Compute) else type(op).__name__.lower()
        sums = found.setdefault(name, [0.0, 0.0, 0.0, 0.0])
        for place, amount in enumerate((1, times, cycles * times, by_table * times)):
            sums[place] += amount
    kinds = [KindCycles(name, *(round(amount) for amount in sums)) for name, sums in found.items()]
    return sorted(kinds, key=lambda kind: (-kind.cycles, kind.name))
