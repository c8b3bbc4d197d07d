"""Inside a step: what phases leave against the reference; and a folder that shows a fault without schedc."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedc.compiler.dump import compared
from schedc.compiler.recording import Recorded, recording
from schedc.compiler.reproducer import new_folder, refuse_used_folder, write_compile_reproducer, write_reproducer
from schedc.compiler.shrink import Shrunk
from schedc.compiler.trial import Outcome, difference, problems
from schedc.errors import UserError
from schedc.ir.text_print import print_program
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.kernels.built import build_kernel, in_format, trial
from tests.kernels.recorded import recorded_kernel
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

SPEC = in_format(small_spec(), "f32")
SHAPE = StepShape(2, 32, logits=True, taps=(0, 1, 2))

Stepped = tuple[Any, tuple[Recorded, ...], Outcome, Path]


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Stepped:
    """A step of a kernel with a tap after every layer and copies of all phases, what it copies, and a folder with its
    kernel and arguments."""
    kept = tmp_path_factory.mktemp("kept")
    built, records = recorded_kernel(SPEC, SHAPE)
    made = trial(built, SPEC, SHAPE, "eager", records=records)

    def keep(given: dict[str, Any]) -> None:
        np.savez(kept / "inputs.npz", **{name: np.asarray(value) for name, value in given.items()})

    made.decoder.before_call = keep
    outcome = made.step((5, 11))
    (kept / "kernel.py").write_text(built.kernel.source)
    limit = difference(outcome, SPEC).logits_limit
    np.savez(kept / "expected.npz", logits=outcome.exact_logits, limit=limit)
    return built, records, outcome, kept


def test_taps_agree_with_the_reference(stepped: Stepped):
    _, _, outcome, _ = stepped
    assert outcome.streams is not None and outcome.streams.got.shape == (3, 2, SPEC.hidden)
    assert problems(outcome, SPEC) == []
    assert all(outcome.streams.largest(tap, row) > 0 for tap in range(3) for row in range(2)), "made in another way"


def test_a_tap_that_differs_is_a_problem_of_the_step(stepped: Stepped):
    _, _, outcome, _ = stepped
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
    assert outcome.streams.got.shape == (2, 3, SPEC.hidden)
    assert all(outcome.streams.largest(tap, row) > 0 for tap in range(2) for row in range(2)), "made in another way"


def test_what_is_compared_comes_in_the_order_of_execution_with_the_first_element_that_differs(stepped: Stepped):
    _, records, outcome, _ = stepped
    every = list(compared(outcome, SPEC, records))
    assert all(one.element is None and one.largest <= one.limit for one in every)
    mixer = ["mixer_norm", "qkv", "heads", "attend", "join", "o", "mixer_residual"]
    layer = [*mixer, "feed_forward_norm", "up", "activation", "down", "feed_forward_residual"]
    order = list(dict.fromkeys((one.layer, one.phase) for one in every))
    layers = [(number, phase) for number in range(3) for phase in layer]
    assert order == [(None, "embed"), *layers, (None, "final_norm"), (None, "head")]
    attended = [one.what for one in every if (one.layer, one.phase, one.row) == (1, "attend", 0)]
    assert attended == ["attn.mixed", "kept k", "kept v"]
    keys, values = (side.copy() for side in outcome.got[2])
    values[1, 11, 1, 3] = np.nan
    values[1, 11, 1, 5] += 1.0
    changed = replace(outcome, got=[*outcome.got[:2], (keys, values)])
    (wrong,) = [one for one in compared(changed, SPEC, records) if one.element]
    assert (wrong.phase, wrong.layer, wrong.what, wrong.row, wrong.element) == ("attend", 2, "kept v", 1, (1, 3))
    assert wrong.line().startswith(
        "phase attend of layer 2: kept v of row 1 differs, first in element (1, 3): nan, the"
    )


def test_a_row_that_does_not_count_is_not_compared(stepped: Stepped):
    _, records, outcome, _ = stepped
    one = replace(outcome, step=replace(outcome.step, active=(False, True)))
    assert {found.row for found in compared(one, SPEC, records)} == {1}


def test_what_is_not_asked_for_is_not_copied_and_copies_are_all_that_is_added():
    built = build_kernel(SPEC, SHAPE)
    small, target = shrunk(built), parse_target("tpu7x")
    same, none = recording(small, target, ())
    assert same.program == small.schedule.program and none == ()
    copying, records = recording(small, target, ("heads", "up"))
    assert [(one.phase, one.value.meaning) for one in records] == [
        *(("heads", f"attn.{name}") for name in ("queries", "key", "value")),
        *(("up", f"mlp.{name}") for name in ("gate", "up")),
    ]
    before, behind = (print_program(made.program).splitlines() for made in (small.schedule, copying))
    added = [line for line in behind if line not in before]
    assert added and all("cop" in line or line.strip().startswith(("when", "}")) for line in added), added
    assert [line for line in before if line not in behind] == []


def shrunk(built: Any) -> Shrunk:
    return Shrunk(SPEC, SHAPE, built.schedule, ())


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Where schedc cannot be imported."""
    blocked = folder / "blocked"
    blocked.mkdir(exist_ok=True)
    (blocked / "schedc.py").write_text("raise ImportError('a reproducer needs only jax')\n")
    environment = os.environ | {"PYTHONPATH": str(blocked)}
    command = [sys.executable, "run.py", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_a_reproducer_shows_the_fault_again_with_jax_alone(stepped: Stepped, tmp_path: Path):
    """The same kernel and arguments, against logits that another model would have."""
    built, records, outcome, kept = stepped
    write_reproducer(tmp_path / "right", kept, shrunk(built), "eager", ["it was right"], records)
    said = run(tmp_path / "right")
    assert said.returncode == 0, said.stderr
    assert f"ids [{outcome.ids.tolist()}]" in said.stdout and "largest difference" in said.stdout
    logits = outcome.exact_logits.copy()
    logits[1, 4] += 1.0
    np.savez(tmp_path / "right" / "expected.npz", logits=logits, limit=2e-3)
    said = run(tmp_path / "right", "--save")
    assert said.returncode == 1 and "first: row 1, id 4" in said.stdout, said.stdout + said.stderr
    told = (tmp_path / "right" / "README.md").read_text()
    (queries,) = [one for one in records if one.value.meaning == "attn.queries"]
    assert "    it was right" in told
    assert f"- `{queries.array}`: attn.queries, in buffer q behind phase heads of layers 0, 1, 2" in told
    assert ": attn.key, attn.value, in buffer kv_row behind phase heads of layers 0, 1, 2" in told
    assert outcome.copies is not None
    saved = np.load(tmp_path / "right" / "results.npz")[queries.array]
    assert (saved == outcome.copies.words[queries.array][0]).all() and saved.any()


def test_a_reproducer_takes_no_folder_that_has_something(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="is not empty; give a new folder"):
        new_folder(tmp_path)


def test_asking_for_a_folder_leaves_nothing(tmp_path: Path):
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "new" / "below", tmp_path / "there"):
        refuse_used_folder(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    (tmp_path / "there" / "mine").write_text("mine")
    with pytest.raises(UserError, match="is not empty; give a new folder"):
        refuse_used_folder(tmp_path / "there")


def test_a_refused_kernel_is_compiled_again_by_its_reproducer(tmp_path: Path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text("raise ValueError('this kernel is broken')\n")
    write_compile_reproducer(tmp_path / "refused", kernel, "tpu7x:2x2x1", 1, "the TPU compiler refuses the kernel")
    assert "the TPU compiler refuses the kernel" in (tmp_path / "refused" / "README.md").read_text()
    said = run(tmp_path / "refused")
    assert said.returncode == 1 and "this kernel is broken" in said.stdout + said.stderr
