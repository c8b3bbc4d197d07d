"""Inside a step: what layers keep and leave against the reference; and a folder that shows a fault without schedc."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedc.compiler.dump import LOGITS, compared
from schedc.compiler.reproducer import new_folder, write_compile_reproducer, write_reproducer
from schedc.compiler.shrink import Shrunk
from schedc.compiler.trial import Outcome, difference, problems
from schedc.errors import UserError
from schedc.lower.graph import StepShape
from tests.kernels.built import build_kernel, in_format, trial
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(small_spec(), "f32")
SHAPE = StepShape(2, 32, logits=True, taps=(0, 1, 2))


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Outcome, Path]:
    """A step of a kernel with a tap after every layer, and a folder with its kernel and arguments."""
    kept = tmp_path_factory.mktemp("kept")
    built = build_kernel(SPEC, SHAPE)
    made = trial(built, SPEC, SHAPE, "eager")

    def keep(given: dict[str, Any]) -> None:
        np.savez(kept / "inputs.npz", **{name: np.asarray(value) for name, value in given.items()})

    made.decoder.before_call = keep
    outcome = made.step((5, 11))
    (kept / "kernel.py").write_text(built.kernel.source)
    limit = difference(outcome, SPEC).logits_limit
    np.savez(kept / "expected.npz", logits=outcome.exact_logits, limit=limit)
    return built, outcome, kept


def test_taps_agree_with_the_reference(stepped: tuple[Any, Outcome, Path]):
    _, outcome, _ = stepped
    assert outcome.streams is not None and outcome.streams.got.shape == (3, 2, SPEC.hidden)
    assert problems(outcome, SPEC) == []
    assert all(outcome.streams.largest(tap, row) > 0 for tap in range(3) for row in range(2)), "made in another way"


def test_a_tap_that_differs_is_a_problem_of_the_step(stepped: tuple[Any, Outcome, Path]):
    _, outcome, _ = stepped
    assert outcome.streams is not None
    got = outcome.streams.got.copy()
    got[1, 0, 7] += 1.0
    (said,) = problems(replace(outcome, streams=replace(outcome.streams, got=got)), SPEC)
    assert said.startswith("layer 1: the stream after it of row 0 differs, first in element 7: ")


def test_taps_of_tokens_of_one_sequence_agree_too():
    shape = StepShape(3, 32, logits=True, taps=(0, 2), rows_are="tokens")
    made = trial(build_kernel(SPEC, shape), SPEC, shape, "on_wait")
    outcome = made.step((4, 5, 6), (True, True, False))
    assert outcome.streams is not None and problems(outcome, SPEC) == []
    assert {(one.layer, one.row) for one in compared(outcome, SPEC) if one.what == "stream"} == {
        (layer, row) for layer in (0, 2) for row in (0, 1)
    }


def test_what_is_compared_comes_in_the_order_of_computation_with_the_first_element_that_differs(
    stepped: tuple[Any, Outcome, Path],
):
    _, outcome, _ = stepped
    every = list(compared(outcome, SPEC))
    assert [(one.layer, one.what) for one in every if one.row == 0] == [
        *((layer, what) for layer in range(3) for what in ("k", "v", "stream")),
        (LOGITS, "logits"),
    ]
    assert all(one.element is None and one.largest <= one.limit for one in every)
    keys, values = (side.copy() for side in outcome.got[2])
    values[1, 11, 1, 3] = np.nan
    values[1, 11, 1, 5] += 1.0
    wrong = [one for one in compared(replace(outcome, got=[*outcome.got[:2], (keys, values)]), SPEC) if one.element]
    assert [(one.layer, one.what, one.row, one.element) for one in wrong] == [(2, "v", 1, (1, 3))]


def shrunk(built: Any) -> Shrunk:
    return Shrunk(SPEC, SHAPE, built.schedule, ())


def run(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Where schedc cannot be imported."""
    blocked = folder / "blocked"
    blocked.mkdir(exist_ok=True)
    (blocked / "schedc.py").write_text("raise ImportError('a reproducer needs only jax')\n")
    environment = os.environ | {"PYTHONPATH": str(blocked)}
    command = [sys.executable, "run.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_a_reproducer_shows_the_fault_again_with_jax_alone(stepped: tuple[Any, Outcome, Path], tmp_path: Path):
    """The same kernel and arguments, against logits that another model would have."""
    built, outcome, kept = stepped
    write_reproducer(tmp_path / "right", kept, shrunk(built), "eager", ["it was right"])
    said = run(tmp_path / "right")
    assert said.returncode == 0, said.stderr
    assert f"ids [{outcome.ids.tolist()}]" in said.stdout and "largest difference" in said.stdout
    logits = outcome.exact_logits.copy()
    logits[1, 4] += 1.0
    np.savez(tmp_path / "right" / "expected.npz", logits=logits, limit=2e-3)
    said = run(tmp_path / "right")
    assert said.returncode == 1 and "first: row 1, id 4" in said.stdout, said.stdout + said.stderr
    assert "    it was right" in (tmp_path / "right" / "README.md").read_text()


def test_a_reproducer_takes_no_folder_that_has_something(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="is not empty; give a new folder"):
        new_folder(tmp_path)


def test_a_refused_kernel_is_compiled_again_by_its_reproducer(tmp_path: Path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text("raise ValueError('this kernel is broken')\n")
    write_compile_reproducer(tmp_path / "refused", kernel, "tpu7x:2x2x1", 1, "the TPU compiler refuses the kernel")
    assert "the TPU compiler refuses the kernel" in (tmp_path / "refused" / "README.md").read_text()
    said = run(tmp_path / "refused")
    assert said.returncode == 1 and "this kernel is broken" in said.stdout + said.stderr
