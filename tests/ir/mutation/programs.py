"""The programs that faults are put into."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from schedc.ir.allocate import allocate
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

_FOLDER = Path(__file__).parent.parent / "programs"

WRITTEN = tuple(sorted(path.stem for path in _FOLDER.glob("*.ir")))
"""Those written by hand, in the text form."""
PROGRAMS = ("smollm2", *WRITTEN)


@cache
def program(name: str) -> Program:
    return smollm2() if name == "smollm2" else parse_program((_FOLDER / f"{name}.ir").read_text())


def smollm2(layers: int = 2, rows: int = 2, context: int = 512) -> Program:
    """The generated schedule of SmolLM2 with fewer layers and a small cache, with addresses."""
    spec, target = load_spec("smollm2-135m"), parse_target("tpu7x")
    runs = tuple(run.model_copy(update={"repeat": layers}) for run in spec.layers)
    spec = spec.model_copy(update={"layers": runs})
    return allocate(schedule(spec, StepShape(rows, context), target, "ring").program, capacity_rows(target))
