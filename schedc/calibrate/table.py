"""The table *predicted | measured | error* of everything that was measured and is predicted, misses included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from schedc.calibrate.constants import Values, machine_of
from schedc.calibrate.experiments import Experiment, experiments, predict_all
from schedc.calibrate.trials import TRIALS
from schedc.cost.calibration.measurements import Measurement
from schedc.ir.program import Program
from schedc.target.target import Target

Use = Literal["fitted", "tested"]


@dataclass(frozen=True)
class Row:
    name: str
    predicted: float
    measured: float
    unit: str
    use: Use
    source: str

    @property
    def error(self) -> float:
        """predicted / measured - 1."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True)
class TrialRow:
    name: str
    predicted: float
    found: float
    unit: str
    agrees: bool
    source: str
    at_most: bool = False


@dataclass(frozen=True)
class Table:
    rows: tuple[Row, ...]
    trials: tuple[TrialRow, ...]
    left_out: tuple[tuple[str, int], ...]
    """(what the rows say, how many): measured, and not predicted."""

    @property
    def steps(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.name.startswith("step: "))

    @property
    def slots(self) -> tuple[Row, ...]:
        """A step of eight layers by the slots of the experts."""
        return tuple(row for row in self.rows if row.name.startswith("step of 8 layers"))

    def order(self, which: Literal["predicted", "measured"]) -> str:
        """The numbers of slots of `slots`, the quickest first."""
        ordered = sorted(self.slots, key=lambda row: float(getattr(row, which)))
        return ", ".join(row.name.partition("slots=")[2].partition(",")[0] for row in ordered)

    def to_dict(self) -> dict[str, object]:
        rows = [asdict(row) | {"error": round(row.error, 4)} for row in self.rows]
        return {"rows": rows, "trials": [asdict(row) for row in self.trials], "left_out": dict(self.left_out)}


def table(
    measured: tuple[Measurement, ...], target: Target, values: Values, programs: Mapping[str, Program] | None = None
) -> Table:
    """What `values` predict of `measured`, with the programs of rows of generated kernels, and of the trials."""
    found = tuple(experiments(measured, programs))
    machine = machine_of(target, values)
    predicted = predict_all(found, target, values)
    trials = [(trial, trial.predict(machine, values)) for trial in TRIALS]
    return Table(
        tuple(_row(experiment, value) for experiment, value in zip(found, predicted, strict=True)),
        tuple(TrialRow(t.name, value, t.found, t.unit, t.agrees(value), t.source, t.at_most) for t, value in trials),
        tuple(sorted(Counter(_left_out(measured, found)).items())),
    )


def _row(experiment: Experiment, predicted: float) -> Row:
    row = experiment.row
    use: Use = "fitted" if experiment.fitted else "tested"
    return Row(experiment.name, predicted, row.number, row.unit, use, row.source)


def _left_out(measured: tuple[Measurement, ...], found: tuple[Experiment, ...]) -> Iterator[str]:
    known = {id(experiment.row) for experiment in found}
    for row in measured:
        if id(row) not in known:
            yield f"{row.metric}: {WHY.get(row.metric, 'no program of theirs is written down for it')}"


WHY = {
    "step": "kernels before the final schedule, and other runs of the final ones",
    "step best 16-step call": "the spread of a row that is predicted",
    "step worst 16-step call": "the spread of a row that is predicted",
    "aggregate": "the batch over a step that is predicted, with the host's part",
    "decode": "of a server, with sampling and sockets",
    "floor": "computed by its authors, not measured",
    "bytes": "computed by its authors, not measured",
    "bytes per core per step": "computed by its authors, not measured",
    "bytes dense": "computed by its authors, not measured",
    "bytes experts": "computed by its authors, not measured",
    "bytes lm_head": "computed by its authors, not measured",
    "floor/step": "computed by its authors, not measured",
    "prefill": "another program",
    "prefill dequant gate_up XLA": "another program",
    "prefill dequant gate_up Pallas": "another program",
    "prefill dequant down XLA": "another program",
    "prefill dequant down Pallas": "another program",
    "container load": "another program",
    "dot": "taken as prices of the experts' products",
    "of which dots": "part of a row of an earlier kernel",
    "per phase": "a range over phases, of which the fitted skew is a part",
    "dense ring": "computed by its authors: bytes over the rate of the ring",
    "collectives": "of an earlier kernel",
    "experts": "of an earlier kernel",
    "attention": "of an earlier kernel",
    "routing": "of an earlier kernel",
    "marginal per layer": "of an earlier kernel",
    "marginal per layer (62-layer minus L=8 sweep)": "of an earlier kernel",
    "fixed per step": "of an earlier kernel",
    "fixed (same)": "of an earlier kernel",
    "expert phase": "of an earlier kernel, or of rows that choose different experts",
    "of which XLA embedding+psum": "part of the fitted time outside of the kernel",
    "dispatch+XLA glue+barrier+prime": "part of the fitted time outside of the kernel",
    "per expert": "of rows that choose different experts, whose loop is not written down",
}
"""Why rows of a metric are not predicted."""
