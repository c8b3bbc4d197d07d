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
LONG = ("qwen3-30b-a3b", "windows")
"""Generated, on two devices with experts, and by hand: each mutant takes a third of a second or more."""
PROGRAMS = ("smollm2", *(name for name in WRITTEN if name not in LONG))


@cache
def program(name: str) -> Program:
    if name in WRITTEN:
        return parse_program((_FOLDER / f"{name}.ir").read_text())
    return generated("smollm2-135m") if name == "smollm2" else generated(name, devices=2)


def generated(model: str, layers: int = 2, rows: int = 2, context: int = 512, devices: int = 1) -> Program:
    """The generated schedule of a model with fewer layers and a small cache, with addresses."""
    spec, target = load_spec(model), parse_target("tpu7x:2x2x1")
    runs = tuple(run.model_copy(update={"repeat": layers}) for run in spec.layers)
    spec = spec.model_copy(update={"layers": runs})
    return allocate(
        schedule(spec, StepShape(rows, context, devices=devices), target, "ring").program, capacity_rows(target)
    )
