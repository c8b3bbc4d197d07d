"""`schedc compile`: a folder of four files, whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from schedc.errors import CheckFailed
from tests.one_device import models_on_one_device

from .conftest import Command, refused

FILES = ["decisions.json", "decisions.md", "kernel.py", "manifest.json", "program.ir", "report.json"]


def listed(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize("model", models_on_one_device())
def test_every_model_is_proven_and_predicted(schedc: Command, model: str) -> None:
    said = schedc("compile", model, "--no-check", "--json")
    assert (said.code, said.err) == (0, "")
    result = said.json()
    assert (result["folder"], result["files"]) == (f"out/{model}", FILES)
    assert listed(f"out/{model}") == FILES
    assert result["proof"]["proven"] and result["compiler"] is None
    assert 0 < result["vmem"]["peak_bytes"] == sum(result["vmem"]["pools"].values()) < result["vmem"]["limit_bytes"]
    assert result["cost"]["step_us"] >= max(bound["time_us"] for bound in result["cost"]["bounds"].values()) > 0
    report = json.loads(Path(f"out/{model}/report.json").read_text())
    assert report == {key: result[key] for key in report}


def test_a_person_sees_phases_memory_verdicts_and_bounds(schedc: Command) -> None:
    said = schedc("compile", "smollm2-135m", "--no-check", "-o", "k")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "smollm2-135m: 134.5 M parameters, 30 layers, 576 wide"
    assert lines[1] == "tpu7x:2x2x1: 4 chips, 8 devices, 1 host; 1 device used"
    starts = [line.split()[0] for line in lines if line]
    for word in ("phase", "attend", "VMEM", "pool", "proof", "TPU", "predicted", "lower", "seconds"):
        assert word in starts, word
    assert lines[-1].startswith(f"wrote k: {', '.join(FILES)} (the kernel: ")


def test_a_bound_of_exchanges_is_shown_only_where_there_are_any(schedc: Command) -> None:
    one = schedc("compile", "smollm2-135m", "--context", "256", "--no-check").out
    two = schedc("compile", "smollm2-135m", "--context", "256", "--devices", "2", "--no-check").out
    assert "longest chain of waits" in one and "µs dependent exchanges" not in one
    assert "µs dependent exchanges" in two and "0.0 µs dependent exchanges" not in two


def test_a_person_sees_what_was_chosen_for_formats_and_devices(schedc: Command) -> None:
    given = ("smollm2-135m", "--context", "256", "--no-check", "--devices", "2", "--weights", "mxfp4")
    lines = schedc("compile", *given, "--form", "mxfp4=dequantised", "--collective", "ring", "--wire", "bf16").out
    assert lines.splitlines()[2].startswith("rows 1, context 256, weights mxfp4, kv bf16 in tiles of ")
    assert lines.splitlines()[3:5] == [
        "quantised weights are multiplied as mxfp4_dequantised",
        "devices sum what each has a part of by ring, bf16 on the wire",
    ]


def test_the_same_request_writes_the_same_bytes_in_place_of_the_old_ones(schedc: Command) -> None:
    compile_it = ("compile", "smollm2-135m", "--context", "256", "--no-check", "-o", "k")
    assert schedc(*compile_it).code == 0
    first = contents("k")
    Path("k/report.json").write_text("old")
    assert schedc(*compile_it).code == 0
    assert contents("k") == first
    assert listed() == ["k"]


def test_formats_shape_and_settings_reach_the_program(schedc: Command) -> None:
    said = schedc(
        "compile", "smollm2-135m", "--no-check", "-o", "k", "--weights", "f32", "--kv", "f32", "--rows", "3",
        "--context", "100", "--logits", "--policy", "ring", "--set", "depth=3", "--set", "slot_mib=0.5",
    )  # fmt: skip
    assert said.code == 0
    manifest = json.loads(Path("k/manifest.json").read_text())
    asked = {"rows": 3, "context": 100, "logits": True, "policy": "ring", "settings": {"depth": 3, "slot_mib": 0.5}}
    assert {key: manifest[key] for key in asked} == asked
    assert manifest["spec"]["quantization"] == {"weights": "f32"} and manifest["spec"]["kv"] == {"dtype": "f32"}


def test_the_example_policy_compiles(schedc: Command) -> None:
    policy = Path(__file__).parents[2] / "examples" / "my_policy.py"
    said = schedc("compile", "smollm2-135m", "--no-check", "--json", "--policy", f"{policy}:late_cache")
    assert said.code == 0 and said.json()["proof"]["proven"]
    assert json.loads(Path("out/smollm2-135m/manifest.json").read_text())["kv_tokens"] == 64


def test_an_error_leaves_the_old_output_and_nothing_else(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "k")
    before = contents("k")

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("schedc.compiler.output.write_report", interrupt)
    said = schedc("compile", "smollm2-135m", "--context", "128", "--no-check", "-o", "k")
    assert (said.code, said.out, said.err) == (130, "", "interrupted\n")
    assert contents("k") == before
    assert listed() == ["k"]


def test_a_refusal_of_the_compiler_keeps_the_files_aside(schedc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from schedc.compiler import check

    def refuse(compiled: object, kernel: Path, *arguments: object) -> None:
        assert kernel.is_file()
        raise CheckFailed(f"{kernel}:7: no")

    monkeypatch.setattr(check, "check", refuse)
    message = refused(schedc("compile", "smollm2-135m", "--context", "64", "-o", "k"), code=1)
    assert message == "k.failed/kernel.py:7: no\nthe files are kept in k.failed"
    assert listed() == ["k.failed"]
    assert listed("k.failed") == [name for name in FILES if name != "report.json"]


@pytest.mark.kernel
def test_the_tpu_compiler_agrees_and_the_artifact_is_written(schedc: Command) -> None:
    said = schedc("compile", "smollm2-135m", "--context", "256", "--export", "--json", "-o", "k")
    assert said.code == 0, said.err
    compiler = said.json()["compiler"]
    assert compiler["problems"] == []
    assert compiler["vmem_bytes"]["scratch"] == said.json()["vmem"]["peak_bytes"]
    assert listed("k") == sorted(["kernel.export", "profile.json", *FILES])
    assert said.json()["cost_by_compiler"]["priced_by"].startswith("the compiler's cycles (jax ")


def test_inspect_reads_a_folder_and_a_model_alike(schedc: Command) -> None:
    schedc("compile", "smollm2-135m", "--no-check", "-o", "k")
    assert schedc("inspect", "ir", "k").out == Path("k/program.ir").read_text()
    assert schedc("inspect", "ir", "smollm2-135m").out == Path("k/program.ir").read_text()
    assert schedc("inspect", "ir", "k", "--json").json() == {"program": Path("k/program.ir").read_text()}


def test_options_cannot_be_given_for_a_compiled_folder(schedc: Command) -> None:
    schedc("compile", "smollm2-135m", "--context", "64", "--no-check", "-o", "k")
    assert refused(schedc("inspect", "ir", "k", "--policy", "just_in_time", "--set", "slot_mib=1")) == (
        "k: has been compiled; --policy, --set cannot be given for it"
    )
