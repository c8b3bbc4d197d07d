"""What `schedc bench` timed, as rows of a file of measurements."""

from __future__ import annotations

import csv
from dataclasses import astuple
from pathlib import Path

from schedc.calibrate.kernels import FORMAT, digest
from schedc.cost.calibration.measurements import COLUMNS, Measurement, measurements
from schedc.lower.graph import StepShape
from schedc.run.bench import Timing
from schedc.spec.model import ModelSpec


def rows_of(timing: Timing, spec: ModelSpec, shape: StepShape, program: str, position: int) -> tuple[Measurement, ...]:
    """The step, the spread of it, and what a call costs beside its steps."""
    from schedc import __version__

    name = FORMAT.format(formats=spec.quantization.weights, digest=digest(program), position=position)
    source = f"schedc bench {__version__}, {timing.calls} pairs of calls of {timing.steps} steps"
    values = (
        ("step", timing.step_us / 1000.0, "ms"),
        ("step best call", timing.best_us / 1000.0, "ms"),
        ("step worst call", timing.worst_us / 1000.0, "ms"),
        ("call beside its steps", timing.call_us, "us"),
    )
    sizes = str(shape.rows), str(shape.context), str(shape.devices)
    return tuple(
        Measurement(spec.name, name, *sizes, metric, f"{value:.4f}", unit, source) for metric, value, unit in values
    )


def append_rows(path: Path, rows: tuple[Measurement, ...]) -> None:
    """At the end of a file of measurements, which is begun if it is not there. Raises UserError for another file."""
    is_new = not path.exists()
    if not is_new:
        measurements.__wrapped__(path)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerows(astuple(row) for row in rows)
