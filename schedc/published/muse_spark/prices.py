"""What a computation of theirs takes: the compiler's cycles where they apply, elsewhere their timings of dots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from schedc.cost.calibration.measurements import Measurement, measurements
from schedc.cost.machine import Machine
from schedc.cost.operations import CycleTable
from schedc.cost.prices import Prices as Cycles
from schedc.cost.prices import notes_of, table_price
from schedc.ir.program import Compute, Op, Program, walk

BLOCK_DIAGONAL = ("nvfp4 gate_up slice block-diag fp8", "nvfp4 gate_up slice batch-major")
DEQUANTISED = {"gate_up": "nvfp4 VPU-dequant bf16 gate_up", "down": "nvfp4 VPU-dequant bf16 down"}
WEIGHTS = {"gate_up": 4096 * 1024, "down": 512 * 4096}


@dataclass(frozen=True)
class Prices:
    """From the rows with the metric `dot`. A kernel has the quicker of the forms that its authors timed."""

    rows: tuple[Measurement, ...]

    @classmethod
    def published(cls) -> Prices:
        return cls(tuple(row for row in measurements() if row.metric == "dot"))

    def expert_dot_ns(self, experts: str, product: str, rows: int) -> float | None:
        """None where the compiler's cycles apply: the dots of int4.

        Their block-diagonal dots were timed for gate_up alone; the one of down, of half as many weights, is taken as
        half of it. The form with the shorter sum of both is what an expert takes.
        """
        if experts != "nvfp4":
            return None
        return min((self._block_diagonal(rows), self._dequantised), key=lambda form: sum(form.values()))[product]

    def _block_diagonal(self, rows: int) -> dict[str, float]:
        timed = [
            row.number * 1000.0 for row in self.rows if row.weights_format in BLOCK_DIAGONAL and row.batch == str(rows)
        ]
        return {name: min(timed) * weights / WEIGHTS["gate_up"] for name, weights in WEIGHTS.items()}

    @cached_property
    def _dequantised(self) -> dict[str, float]:
        times = {row.weights_format: row.number * 1000.0 for row in self.rows}
        return {name: times[text] for name, text in DEQUANTISED.items()}


@dataclass(frozen=True)
class Timed:
    """Prices by the table, but for computations of kind `measured`, which say their own time."""

    clock_ghz: float
    source: str = "the table of operations, and times of its authors"

    def priced(self, program: Program, table: CycleTable) -> Cycles:
        priced = [self._price(op, table, program.devices) for op in walk(program.body)]
        notes = notes_of(note for _, note in priced)
        return Cycles(tuple(cycles for cycles, _ in priced), self.source, notes)

    def _price(self, op: Op, table: CycleTable, devices: int) -> tuple[float, str | None]:
        if isinstance(op, Compute) and op.kind == "measured":
            return float(dict(op.attributes)["ns"]) * self.clock_ghz, None
        return table_price(op, table, devices)


def with_measured(machine: Machine) -> Machine:
    """The machine, for programs with computations of kind `measured`."""
    return replace(machine, pricing=Timed(machine.clock_ghz))
