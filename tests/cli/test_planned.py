"""A plan's file says what its step needs: it is taken from there, and another step than was meant is said to be one."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from schedc.cli.main import app
from schedc.cli.options import ScheduleOptions
from schedc.cli.predict_options import PredictOptions
from schedc.schedule.plan_file import AssumedPart, PlanFile

from .conftest import Command, refused

STEP = ("qwen3-0.6b", "--devices", "2", "--context", "512")
SEARCH = ("--policy", "search", "--rounds", "0", "--no-prove", "--policies", "ring")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plan of a step with two rows, words of bf16 and an algorithm that is not the quickest."""
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    step = (*STEP, "--rows", "2", "--wire", "bf16", "--collective", "ring")
    said = CliRunner().invoke(app, ["explore", *step, *SEARCH, "-o", str(path)])
    assert said.exit_code == 0, said.stderr
    return path.read_text()


@pytest.fixture
def plan(found: str, tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(found)
    return path


def predicted(path: Path) -> float:
    (line,) = (line for line in path.read_text().splitlines() if line.startswith("predicted_us: "))
    return float(line.partition(" ")[2])


def test_all_that_a_step_needs_is_taken_from_the_file(schedc: Command, plan: Path) -> None:
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check", "--json")
    made = said.json()
    assert made["cost"]["step_us"] == predicted(plan)
    assert "warning" not in said.err
    looked = schedc("inspect", "phases", "qwen3-0.6b", "--plan", str(plan), "--json")
    assert (looked.code, "warning" not in looked.err) == (0, True)


@pytest.mark.parametrize(
    "options, cause",
    [
        (("--wire", "f32"), "--wire f32 (the plan has bf16)"),
        (("--collective", "one_shot"), "--collective one_shot (the plan has ring)"),
        (("--context", "4096"), "--context 4096 (the plan has 512)"),
        (("--rows-are", "tokens"), "--rows-are tokens (the plan has sequences)"),
    ],
)
def test_another_step_is_told_with_both_times_and_the_cause(
    schedc: Command, plan: Path, options: tuple[str, ...], cause: str
) -> None:
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), *options, "--no-check", "--json")
    step = said.json()["cost"]["step_us"]
    assert step != predicted(plan)
    assert f"found at {predicted(plan):,.1f} µs; with {cause} {step:,.1f} µs" in said.err


def test_what_is_given_as_the_plan_has_it_is_no_other_step(schedc: Command, plan: Path) -> None:
    given = ("--wire", "bf16", "--collective", "ring", "--context", "512", "--rows", "2", "--target", "tpu7x:2x2x1")
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), *given, "--no-check", "--json")
    assert (said.code, "warning" not in said.err) == (0, True)


def test_a_target_that_is_the_default_counts_as_given(schedc: Command, plan: Path) -> None:
    plan.write_text(plan.read_text().replace("target: tpu7x:2x2x1", "target: tpu7x:2x2x2"))
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--target", "tpu7x:2x2x1")
    assert "is for target tpu7x:2x2x2, not tpu7x:2x2x1" in refused(said)


@pytest.mark.parametrize("written, given", [("tpu7x:2x2x1", "tpu7x"), ("tpu7x", "tpu7x:2x2x1")])
def test_a_target_is_the_same_with_and_without_its_topology(
    schedc: Command, plan: Path, written: str, given: str
) -> None:
    plan.write_text(plan.read_text().replace("target: tpu7x:2x2x1", f"target: {written}"))
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--target", given, "--no-check", "--json")
    assert said.json()["cost"]["step_us"] == predicted(plan)


def test_a_plan_for_a_chip_of_the_users_own_is_compiled_for_its_file(schedc: Command, tmp_path: Path) -> None:
    (tmp_path / "chip.yaml").write_text("base: tpu7x\n")
    step = ("smollm2-135m", "--target", "./chip.yaml", "--context", "128")
    assert schedc("explore", *step, *SEARCH, "-o", "plan.yaml").code == 0
    made = schedc("compile", *step[:3], "--plan", "plan.yaml", "--no-check", "--json").json()
    assert made["cost"]["step_us"] == predicted(tmp_path / "plan.yaml")
    assert "is given as a file, ./chip.yaml" in refused(schedc("compile", step[0], "--plan", "plan.yaml"))


@pytest.mark.parametrize(
    "had, damaged, fault",
    [
        ("context: ", "weights: int3\ncontext: ", "weights: must be 'bf16', "),
        ("context: ", "kv: int8\ncontext: ", "kv: must be 'bf16', 'f32' or 'fp8', not 'int8'"),
        ("context: ", "latent_cache: none\ncontext: ", "latent_cache: must be 'absorbed' or 'expanded', not 'none'"),
        ("seed: 0}", "seed: -1}", "assumed.seed: must be at least 0, not -1"),
        ("seed: 0}", "seed: 0, skew_ns: 1.0e+300}", "assumed.skew_ns: must be at most 1e+09, not 1e+300"),
        ("  kv_slots: ", "  kv_slots: 100000000", "they need a semaphore each, and tpu7x has 3831; use fewer"),
    ],
)
def test_what_no_step_can_have_is_refused_before_anything_is_made_of_it(
    schedc: Command, plan: Path, had: str, damaged: str, fault: str
) -> None:
    assert had in plan.read_text()
    plan.write_text(plan.read_text().replace(had, damaged, 1))
    assert fault in refused(schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check"))


@pytest.mark.parametrize(
    "had, damaged, fault",
    [
        ("wire: bf16", "wire: f16", "wire f16: must be bf16 or f32"),
        ("wire: bf16", "wire: mixer=bf16,mixer=f32", "wire mixer=bf16,mixer=f32: must be one name, or names by site"),
        ("collective: ring", "collective: rings", "collective rings: no collective algorithm is called 'rings'"),
    ],
)
def test_what_a_plan_asks_for_is_refused_by_the_key_of_its_file(
    schedc: Command, plan: Path, had: str, damaged: str, fault: str
) -> None:
    plan.write_text(plan.read_text().replace(had, damaged, 1))
    assert f"plan {plan}: {fault}" in refused(schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check"))
    given = ("--wire", "bf16", "--collective", "rings")
    said = refused(schedc("compile", "qwen3-0.6b", "--plan", str(plan), *given, "--no-check"))
    assert "--collective rings: no collective" in said


@pytest.mark.parametrize(
    "had, damaged, fault",
    [
        ("collective: ring", "collective: latent=fused", "collective names latent, where nothing is summed"),
        ("context: 512", "context: 99999999", "context: 99999999 is not between 1 and max_position"),
        ("rows: 2", "rows: 99", "rows: 99 is not between 1 and 16"),
        ("routing: uniform", "routing: zopf", "--routing zopf: is neither uniform"),
    ],
)
def test_what_is_refused_later_is_told_with_all_that_the_plan_says(
    schedc: Command, plan: Path, had: str, damaged: str, fault: str
) -> None:
    assert had in plan.read_text()
    plan.write_text(plan.read_text().replace(had, damaged, 1))
    said = refused(schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check"))
    assert fault in said
    assert f"plan {plan} says target tpu7x:2x2x1, devices 2" in said
    assert damaged.replace(":", "") in said


@pytest.mark.parametrize("given", [("--policy", "ring"), ("--policy", "double_buffer"), ("--set", "depth=4")])
def test_a_policy_beside_a_plan_is_refused_also_the_default_one(
    schedc: Command, plan: Path, given: tuple[str, ...]
) -> None:
    said = refused(schedc("compile", "qwen3-0.6b", "--plan", str(plan), *given, "--no-check"))
    assert said == "--plan says all that a policy says; leave --policy and --set out"


def test_a_file_of_the_first_version_leaves_wires_to_the_command_line(schedc: Command, plan: Path) -> None:
    later = ("version", "rows_are", "wire", "collective", "placement", "assumed", "settings", "priced_by")
    lines = [line for line in plan.read_text().splitlines() if not line.startswith(later)]
    plan.write_text("\n".join(lines))
    given = ("--wire", "bf16", "--collective", "ring")
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), *given, "--no-check", "--json")
    assert (said.json()["cost"]["step_us"], "warning" in said.err) == (predicted(plan), False)
    without = schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check", "--json")
    assert without.json()["cost"]["step_us"] != predicted(plan)


def test_a_file_of_a_later_version_is_refused(schedc: Command, plan: Path) -> None:
    plan.write_text(plan.read_text().replace("version: 2", "version: 3"))
    assert "is of version 3, which a later schedc has written" in refused(
        schedc("compile", "qwen3-0.6b", "--plan", str(plan))
    )


def test_cycles_that_cannot_be_read_any_more_are_said_to_be_replaced(schedc: Command, plan: Path) -> None:
    plan.write_text(plan.read_text().replace("seed: 0}", "seed: 0, profile: gone.json}"))
    said = schedc("compile", "qwen3-0.6b", "--plan", str(plan), "--no-check", "--json")
    assert said.json()["cost"]["step_us"] == predicted(plan)
    assert f"plan {plan} was priced by gone.json, which cannot be read" in said.err


def test_a_prediction_assumes_what_that_of_the_plan_did(schedc: Command, tmp_path: Path) -> None:
    path, step = tmp_path / "plan.yaml", ("gpt-oss-20b", "--devices", "8", "--context", "512")
    schedc("explore", *step, *SEARCH, "--routing", "zipf:1.5", "--clock-mhz", "1500", "-o", str(path))
    found = schedc("explore", "gpt-oss-20b", "--plan", str(path), "--policies", "ring", "--json").json()["rows"]
    assert next(row["step_us"] for row in found if row["name"] == "plan plan") == predicted(path)
    usual = ("--routing", "uniform", "--clock-mhz", "1900")
    other = schedc("explore", "gpt-oss-20b", "--plan", str(path), *usual, "--policies", "ring", "--json").json()["rows"]
    assert next(row["step_us"] for row in other if row["name"] == "plan plan") < 0.95 * predicted(path)


def test_every_option_of_a_step_is_in_the_file() -> None:
    """A new one has to be, or a plan is compiled for another step in silence. A plan is in place of a policy."""
    options = {field.name for field in fields(ScheduleOptions)}
    assert options - {"policy", "plan"} <= set(PlanFile.model_fields)
    assert {field.name for field in fields(PredictOptions)} == set(AssumedPart.model_fields)


def test_formats_of_single_families_are_of_the_step_too(schedc: Command, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    given = ("--weights-of", "dense=int8")
    assert schedc("explore", "qwen3-0.6b", "--context", "512", *given, *SEARCH, "-o", str(path)).code == 0
    said = schedc("explore", "qwen3-0.6b", "--plan", str(path), "--policies", "ring", "--json").json()["rows"]
    rows = {row["name"]: row["step_us"] for row in said}
    assert rows["plan plan"] == predicted(path)
    whole = schedc("explore", "qwen3-0.6b", "--context", "512", "--policies", "ring", "--json").json()["rows"]
    assert rows["ring"] < 0.9 * whole[0]["step_us"]


def test_what_is_no_family_or_no_format_is_refused(schedc: Command) -> None:
    for text, message in (
        ("experts=nvfp4", "quantization.experts: the model has none"),
        ("dense=int3", "--weights-of dense=int3: dense: must be"),
        ("int8", "--weights-of int8: must name a family, as in experts=int8"),
        ("lid=int8", "--weights-of lid=int8: lid: unknown key"),
    ):
        assert message in refused(schedc("compile", "smollm2-135m", "--no-check", "--weights-of", text))
