"""`verify_model`: what it says of a right kernel, of a wrong one, and of one that never ends."""

import re
from dataclasses import replace

import pytest

from schedc.compiler import interpret as interpreting
from schedc.compiler.interpret import InterpretReport, Run, addressed, interpret, verify_model
from schedc.compiler.pipeline import Request
from schedc.compiler.shrink import Shrunk, shrink
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.kernels.faults import with_early_refill, without_prefetch
from tests.reference.small_specs import small_spec

pytestmark = pytest.mark.kernel

TARGET = parse_target("tpu7x")
SETTINGS = {"depth": 3, "slot_mib": 0.05}


@pytest.fixture(scope="module")
def small() -> Shrunk:
    spec = small_spec(mixer={"kv_heads": 1}, feed_forward={"width": 1000})
    return shrink(Request(spec, TARGET, StepShape(1, 64), "ring", SETTINGS), "f32")


def test_a_kernel_that_hangs_is_ended_and_its_wait_is_named(small: Shrunk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreting, "STUCK_SECONDS", 2.0)
    run = interpret(small, without_prefetch(addressed(small, TARGET)), "on_wait", 120)
    assert run.problems == ("hangs in step 0: `wait small_arrived[layer % 2] rows=16` of phase mixer_norm never ends",)


def test_a_race_is_named_by_both_of_its_places(small: Shrunk) -> None:
    run = interpret(small, with_early_refill(addressed(small, TARGET)), "on_wait", 300)
    race = r"race: the write in `start w_(up|down).*` of phase up and the read in `compute matmul.*` of phase up"
    assert any(re.fullmatch(race, problem) for problem in run.problems)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 5])
def test_a_right_model_agrees_in_every_run(rows: int) -> None:
    spec = small_spec(mixer={"window": 40}, feed_forward={"width": 1000}, max_position=4096)
    said: list[str] = []
    report = verify_model(Request(spec, TARGET, StepShape(rows, 2000), "ring", SETTINGS), said.append)
    assert report.problems == ()
    assert report.shape_differences == ()
    assert [run.name for run in report.runs] == ["f32, eager", "f32, on_wait", "bf16, eager", "bf16, on_wait"]
    assert all(0 < run.logits < run.logits_limit for run in report.runs)
    assert len(said) == 4


def test_the_report_lists_what_every_run_found() -> None:
    right = Run("f32", "eager", 12.0, 4, 1e-5, 2e-3, 1e-6, 2e-3, ())
    wrong = replace(right, mode="on_wait", logits=0.5, problems=("step 0: row 1 …", "step 1: row 0 …"))
    report = InterpretReport("2 layers", (), (right, wrong))
    assert report.problems == ("f32, on_wait: step 0: row 1 …", "f32, on_wait: step 1: row 0 …")
    assert report.lines() == [
        ("shrunk model", "2 layers"),
        ("schedule shape", "that of the model"),
        (
            "f32, eager",
            "agrees, no races; 4 steps, 12 s; largest difference of logits 1.0e-05 (limit 2.0e-03), "
            "of the cache 1.0e-06 (limit 2.0e-03)",
        ),
        (
            "f32, on_wait",
            "2 problems; 4 steps, 12 s; largest difference of logits 5.0e-01 (limit 2.0e-03), "
            "of the cache 1.0e-06 (limit 2.0e-03)",
        ),
    ]
    assert report.to_dict()["problems"] == list(report.problems)
