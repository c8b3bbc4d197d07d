"""Block attention residuals and taps through the real TPU compiler."""

from pathlib import Path

import pytest

from schedc.compiler.check import check
from schedc.compiler.pipeline import Request, compile_model
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize(
    ("model", "rows", "devices", "block"),
    [
        ("smollm2-135m", 1, 1, 4),
        pytest.param("smollm2-135m", 8, 2, 4, marks=pytest.mark.slow),
        pytest.param("smollm2-135m", 16, 1, 7, marks=pytest.mark.slow),
        pytest.param("qwen3-0.6b", 1, 2, 5, marks=pytest.mark.slow),
        pytest.param("qwen3-0.6b", 4, 1, 28, marks=pytest.mark.slow),
    ],
)
def test_the_compiler_takes_mixtures_of_rows_and_of_one(
    model: str, rows: int, devices: int, block: int, tmp_path: Path
) -> None:
    """A width of whole groups of 8 panels and one that is not, with as many stored sums as 1 to 8."""
    data = load_spec(model).model_dump(mode="json")
    data["residual"] = {"kind": "block_attention", "block": block, "eps": 1e-5}
    shape = StepShape(rows, 2048, devices=devices, taps=(3, 11, 27))
    compiled = compile_model(Request(ModelSpec.model_validate(data), parse_target("tpu7x", devices), shape))
    path = tmp_path / "kernel.py"
    path.write_text(compiled.kernel.source)
    report = check(compiled, path)
    assert report.problems == ()
    assert report.vmem_bytes["scratch"] == report.program_vmem_bytes
