"""Small kernels, built and interpreted in this process."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import load_kernel
from schedc.backends.pallas.emit.kernel import Kernel, emit
from schedc.compiler.pipeline import Request, build
from schedc.compiler.recording import Recorded
from schedc.compiler.trial import Outcome, Trial
from schedc.ir.program import Program
from schedc.lower.graph import StepShape
from schedc.schedule.build import Schedule
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from schedc.weights.source import WeightSource

Mode = Literal["eager", "on_wait"]


@dataclass(frozen=True)
class Built:
    schedule: Schedule
    program: Program
    kernel: Kernel
    module: ModuleType


def in_format(spec: ModelSpec, weights: str) -> ModelSpec:
    """The spec with weights and cache in `weights`."""
    changed = {"quantization": {"weights": weights}, "kv": {"dtype": weights}}
    return ModelSpec.model_validate(spec.model_dump(mode="json") | changed)


def build_kernel(spec: ModelSpec, shape: StepShape, policy: str = "ring", **settings: float) -> Built:
    made, program = build(Request(spec, parse_target("tpu7x"), shape, policy, settings))
    return built_of(made, program)


def built_of(made: Schedule, program: Program) -> Built:
    kernel = emit(program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel.source)
        return Built(made, program, kernel, load_kernel(path))


def trial(
    built: Built,
    spec: ModelSpec,
    shape: StepShape,
    mode: Mode,
    source: WeightSource | None = None,
    records: tuple[Recorded, ...] = (),
) -> Trial:
    compat.reset_interpreter()
    made, settings = built.schedule, compat.interpret_params(mode)
    return Trial(spec, shape, built.module, made.layouts, made.plan.kv_tokens, settings, source=source, records=records)


def step(trial: Trial, positions: tuple[int, ...], active: tuple[bool, ...] | None = None) -> tuple[Outcome, bool]:
    """The outcome of one step, and whether it raced."""
    outcome = trial.step(positions, active)
    raced = compat.races_found()
    compat.reset_interpreter()
    return outcome, raced


def small_tiles(policy: str) -> str:
    """One of the policies of `small_tiles.py`."""
    return f"{Path(__file__).parent / 'small_tiles.py'}:{policy}"
