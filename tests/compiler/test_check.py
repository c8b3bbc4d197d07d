"""What the TPU compiler says is brought back to the program; the program's text is enough to make the kernel again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import check
from schedc.compiler.pipeline import Compiled, Request, compile_model
from schedc.errors import CheckFailed, UserError
from schedc.ir.program import ROW_BYTES, Start, walk
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_program
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.one_device import models_on_one_device
from tests.reference.small_specs import small_spec


def compiled(rows: int = 2) -> Compiled:
    return compile_model(Request(small_spec(hidden=72), parse_target("tpu7x"), StepShape(rows, 50)))


@pytest.mark.kernel
def test_a_refusal_of_the_compiler_names_the_operation_of_the_program(tmp_path: Path) -> None:
    made = compiled()
    lines = made.kernel.source.splitlines()
    place = next(i for i, line in enumerate(lines) if line.strip().startswith("head_finish("))
    lines[place] = "    ids_out[...] = jnp.sort(ids_out[...], axis=1)"
    path = tmp_path / "kernel.py"
    path.write_text("\n".join(lines))
    with pytest.raises(CheckFailed) as error:
        check(made, path)
    first, second = str(error.value).splitlines()
    assert first.startswith("the TPU compiler refuses the kernel (lower): ")
    assert second.startswith(f"  at kernel.py line {place + 1}: compute head_finish(best: read best[0 +: 16], ")


@pytest.mark.kernel
def test_a_transfer_in_another_order_is_a_problem(tmp_path: Path) -> None:
    made = compiled()
    path = tmp_path / "kernel.py"
    path.write_text(made.kernel.source)
    swapped = list(made.kernel.operations)
    first, second = [i for i, (_, op) in enumerate(swapped) if isinstance(op, Start)][:2]
    swapped[first], swapped[second] = (swapped[first][0], swapped[second][1]), (swapped[second][0], swapped[first][1])
    assert check(made, path).problems == ()
    assert check(replace(made, kernel=replace(made.kernel, operations=tuple(swapped))), path).problems


@pytest.mark.kernel
@pytest.mark.parametrize("devices", [1, 2])
def test_a_call_of_several_steps_copies_no_cache(tmp_path: Path, devices: int) -> None:
    shape = StepShape(2, 4096, logits=True, devices=devices)
    made = compile_model(Request(small_spec(hidden=72, max_position=4096), parse_target("tpu7x", devices), shape))
    path = tmp_path / "kernel.py"
    path.write_text(made.kernel.source)
    (cache,) = (array for array in made.program.arrays if array.role == "state")
    report = check(made, path, steps=8)
    assert report.problems == ()
    assert report.temp_bytes < cache.rows * ROW_BYTES / 8
    assert abs(report.issue_cycles - check(made, path).issue_cycles) < 10


def test_several_steps_whose_ids_are_no_next_tokens_are_refused(tmp_path: Path) -> None:
    made = compile_model(Request(small_spec(), parse_target("tpu7x"), StepShape(2, 50, rows_are="tokens")))
    with pytest.raises(UserError, match=r"8 steps a call: ids of a step of .* are no tokens of a next one; use 1"):
        check(made, tmp_path / "kernel.py", steps=8)


@pytest.mark.parametrize("model", models_on_one_device())
def test_the_text_of_a_program_emits_the_same_bytes(model: str) -> None:
    made = compile_model(Request(load_spec(model), parse_target("tpu7x"), StepShape(3, 1024)))
    assert emit(parse_program(print_program(made.program))).source == made.kernel.source


def test_every_start_has_a_line_of_its_own_in_the_kernel() -> None:
    made = compiled()
    lines = made.kernel.source.splitlines()
    starts = [line for line, op in made.kernel.operations if isinstance(op, Start)]
    assert len(set(starts)) == len(starts) == sum(isinstance(op, Start) for op in walk(made.program.body))
    assert all(".start()" in lines[line - 1] for line in starts)
    assert sum(line.strip().startswith("copy(") for line in lines if line.startswith("    ")) >= len(starts)


def test_the_emitted_kernel_is_the_same_every_time() -> None:
    assert compiled().kernel.source == compiled().kernel.source
