"""Full-size models through the real TPU compiler: what it makes is what the program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cycles.__main__ import measured
from benchmarks.full_size.cases import Case, load_cases
from schedc.compiler.check import CheckReport, check
from schedc.compiler.pipeline import Compiled, Request, compile_model
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target

pytestmark = pytest.mark.kernel

CONTEXT = 4096


def compile_and_check(request: Request, folder: Path) -> tuple[Compiled, CheckReport]:
    compiled = compile_model(request)
    path = folder / "kernel.py"
    path.write_text(compiled.kernel.source)
    return compiled, check(compiled, path)


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("case", [case for case in load_cases() if case.ci], ids=lambda case: case.label)
def test_every_family_compiles_at_full_size_with_the_vmem_of_its_program(case: Case, tmp_path: Path) -> None:
    _, report = compile_and_check(case.request(), tmp_path)
    assert report.problems == ()
    assert report.vmem_bytes["scratch"] == report.program_vmem_bytes
    assert sum(report.vmem_bytes.values()) - report.vmem_bytes["internal"] <= report.vmem_limit_bytes
    assert report.vmem_bytes["window"] == report.vmem_bytes["other"] == 0
    assert 0.8 < report.predicted_cycles / report.issue_cycles < 1.25


@pytest.mark.slow
@pytest.mark.newest
def test_a_step_of_kimi_k3_takes_at_most_2_8_million_issue_cycles() -> None:
    """Every loop at its trips, two experts a device; the published hand-written kernel takes 3.47 million."""
    (case,) = (case for case in load_cases() if (case.name, case.rows, case.context) == ("kimi-k3", 1, 2048))
    _, cycles = measured(case.request(), position=150, timeout=600)
    assert 1_000_000 < sum(cycles.values()) <= 2_800_000


def on_one_device(spec: ModelSpec, rows: int) -> Request:
    return Request(spec, parse_target("tpu7x:2x2x1"), StepShape(rows, CONTEXT))


def test_starts_are_in_the_bundles_in_the_order_of_the_program(tmp_path: Path) -> None:
    _, report = compile_and_check(on_one_device(load_spec("smollm2-135m"), 2), tmp_path)
    assert report.problems == ()
    assert report.transfers > 20


def test_depth_adds_no_lines_and_no_code(tmp_path: Path) -> None:
    def deep(layers: int) -> tuple[Compiled, CheckReport]:
        spec = load_spec("smollm2-135m").model_dump(mode="json")
        spec["layers"][0]["repeat"] = layers
        folder = tmp_path / str(layers)
        folder.mkdir()
        return compile_and_check(on_one_device(ModelSpec.model_validate(spec), 1), folder)

    (shallow, few), (tall, many) = deep(30), deep(300)
    assert shallow.kernel.source.count("\n") == tall.kernel.source.count("\n")
    assert abs(many.code_bytes / few.code_bytes - 1) < 0.01
    assert many.problems == few.problems == ()
