"""Programs on many devices: text for a given number of them, compiled for real or interpreted on virtual ones."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.report import CompileReport
from schedc.backends.pallas.aot.transfers import check_order
from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import expected_transfers
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program

EXAMPLES = Path(__file__).parents[2] / "examples"
TOPOLOGY = "tpu7x:2x2x1"


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.ir").read_text()


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, f"{old!r} is not in the program"
        text = text.replace(old, new)
    return text


def compiled(program: Program, folder: Path) -> tuple[CompileReport, list[str]]:
    """What the TPU compiler made of it, and where its transfers differ from the program's."""
    kernel = emit(program)
    path = folder / "kernel.py"
    path.write_text(kernel.source)
    report = compile_kernel(path, TOPOLOGY, program.devices)
    return report, check_order(report, expected_transfers(program, kernel))


@dataclass(frozen=True)
class Answer:
    """The outputs of one mode, each device's by itself: int32[devices, rows, 128]."""

    outputs: dict[str, np.ndarray]
    raced: bool
    log: str


def interpreted(text: str, inputs: dict[str, np.ndarray], seconds: float = 120) -> dict[str, Answer]:
    """Answers by mode; arrays of `inputs` have the devices as first dimension. Ends after `seconds` at the latest."""
    program = parse_program(text)
    arrays = {array.name for array in program.arrays}
    flat = {n: value.reshape(-1, 128) if n in arrays else value for n, value in inputs.items()}
    with tempfile.TemporaryDirectory() as name:
        kernel, given, answers = (Path(name) / file for file in ("kernel.py", "inputs.npz", "answers.npz"))
        kernel.write_text(emit(program).source)
        np.savez(given, **flat)
        worker = Path(__file__).parent / "interpret_devices.py"
        command = [sys.executable, str(worker), str(kernel), str(program.devices), str(given), str(answers)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        assert run.returncode == 0, run.stderr[-2000:]
        found = dict(np.load(answers))
    return {mode: _answer(found, mode, program, run.stdout + run.stderr) for mode in ("eager", "on_wait")}


def _answer(found: dict[str, np.ndarray], mode: str, program: Program, log: str) -> Answer:
    outputs = {
        array.name: found[f"{mode}.{array.name}"].reshape(program.devices, array.rows, 128)
        for array in program.arrays
        if array.role in ("state", "output")
    }
    return Answer(outputs, bool(found[f"{mode}.races"]), log)
