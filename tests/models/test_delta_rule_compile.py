"""Delta rules through the real TPU compiler: every form in which heads, sequences and states go."""

from pathlib import Path
from typing import Any

import pytest

from schedc.compiler.check import check
from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import RowsAre, StepShape
from schedc.target.target import parse_target
from tests.reference.recurrent_specs import GATED_DELTA, KDA, alike

pytestmark = pytest.mark.kernel

WIDE = {"key_dim": 128, "value_dim": 128}
FEW_HEADS = KDA | WIDE
LOW_RANK = KDA | WIDE | {"decay": {"kind": "softplus"}, "gate_rank": 128, "heads": 4}
MANY_HEADS = GATED_DELTA | WIDE | {"key_heads": 16, "value_heads": 48}
NARROW = GATED_DELTA
slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("mixer", "rows", "devices", "rows_are"),
    [
        pytest.param(FEW_HEADS, 1, 1, "sequences", id="one row"),
        pytest.param(FEW_HEADS, 8, 1, "tokens", id="tokens"),
        pytest.param(MANY_HEADS, 3, 1, "sequences", id="groups of heads, two slots", marks=slow),
        pytest.param(FEW_HEADS, 8, 2, "sequences", id="a head of padding", marks=slow),
        pytest.param(LOW_RANK, 16, 1, "sequences", id="a gate of low rank", marks=slow),
        pytest.param(MANY_HEADS, 4, 1, "tokens", id="tokens, two slots", marks=slow),
        pytest.param(MANY_HEADS | {"key_heads": 8, "value_heads": 16}, 16, 1, "sequences", id="a loop", marks=slow),
        pytest.param(NARROW, 2, 1, "sequences", id="heads of less than a panel", marks=slow),
    ],
)
def test_the_compiler_takes_every_form(
    mixer: dict[str, Any], rows: int, devices: int, rows_are: RowsAre, tmp_path: Path
) -> None:
    shape = StepShape(rows, 60, devices=devices, rows_are=rows_are)
    compiled = compile_model(Request(alike(mixer), parse_target("tpu7x", devices), shape))
    path = tmp_path / "kernel.py"
    path.write_text(compiled.kernel.source)
    report = check(compiled, path)
    assert report.problems == ()
    assert report.vmem_bytes["scratch"] == report.program_vmem_bytes
