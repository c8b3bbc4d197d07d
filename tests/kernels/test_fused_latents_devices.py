"""Latents that no device has whole: proven, like the reference, and like the sum of all of them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schedc.backends.pallas.aot.compile import compile_kernel
from schedc.backends.pallas.aot.transfers import check_order
from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import expected_transfers
from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.shrink import Shrunk
from schedc.ir.program import Compute, Program, walk
from schedc.ir.verify import verify
from schedc.lower.collectives.choose import communication_for
from schedc.lower.collectives.communication import FUSED
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from schedc.weights.layout import WordDtype
from tests.kernels.built import in_format, small_tiles
from tests.reference.moe_specs import SHARED, SIGMOID, small_moe
from tests.reference.small_specs import RMS

pytestmark = pytest.mark.kernel

LATENT = {"router": SIGMOID, "experts": 6, "latent": {"width": 200, "norm_in": RMS, "norm_out": RMS}}
GATED = {"shared": SHARED, "shared_gate": True}
SCALED_FIRST = {"latent": {"width": 200, "norm_out": RMS | {"scale_first": True}}}


def request(moe: dict[str, Any], rows: int, devices: int, form: str = "f32", wire: WordDtype = "f32") -> Request:
    made = in_format(small_moe(**moe), form)
    target = parse_target("tpu7x:2x2x1", devices)
    talk = communication_for(made.hidden, rows, target, "two_phase", wire).at_sites({"latent": FUSED}, {})
    shape = StepShape(rows, 40, logits=True, devices=devices, communication=talk)
    return Request(made, target, shape, small_tiles("ring"))


def kinds(program: Program) -> set[str]:
    return {op.kind for op in walk(program.body) if isinstance(op, Compute)}


@pytest.mark.parametrize(
    ("rows", "devices", "moe"),
    [
        pytest.param(1, 4, LATENT | {"shared": SHARED}, id="more devices than panels"),
        pytest.param(3, 2, LATENT | GATED, id="a gated shared expert, rows that pad"),
        pytest.param(8, 2, LATENT | SCALED_FIRST, id="no shared expert, all rows used", marks=pytest.mark.slow),
        pytest.param(2, 2, LATENT | SCALED_FIRST, id="no shared expert, rows that pad", marks=pytest.mark.slow),
        pytest.param(11, 4, LATENT | {"shared": SHARED}, id="eleven rows of sixteen", marks=pytest.mark.slow),
    ],
)
def test_devices_agree_with_the_reference(rows: int, devices: int, moe: dict[str, Any]) -> None:
    asked = request(moe, rows, devices)
    made, program = build(asked)
    assert "sum_scaled" in kinds(program)
    verdict = verify(program, limits_of(asked.target))
    assert verdict.proven, str(verdict)
    run = interpret(Shrunk(asked.spec, asked.shape, made, ()), program, "eager" if rows > 1 else "on_wait", 500)
    assert run.problems == ()
    assert 0 < run.logits < 1e-3


@pytest.mark.parametrize(
    ("rows", "wire", "moe"),
    [
        pytest.param(1, "bf16", LATENT | {"shared": SHARED}, id="one row in bf16"),
        pytest.param(11, "f32", LATENT | SCALED_FIRST, id="eleven rows in f32"),
        pytest.param(8, "bf16", LATENT | {"shared": SHARED}, id="eight rows in bf16", marks=pytest.mark.slow),
    ],
)
def test_the_tpu_compiler_takes_them(rows: int, wire: WordDtype, moe: dict[str, Any], tmp_path: Path) -> None:
    asked = request(moe, rows, 8, "bf16", wire)
    program = build(asked)[1]
    assert {"pack_parts", "sum_scaled", "operand_of_part"} <= kinds(program)
    kernel, path = emit(program), tmp_path / "kernel.py"
    path.write_text(kernel.source)
    compiled = compile_kernel(path, asked.target.topology_name, 8)
    assert check_order(compiled, expected_transfers(program, kernel)) == []
