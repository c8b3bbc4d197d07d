"""`schedc explore`, and compiling exactly the plan that it wrote."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from .conftest import Command

SMALL = ("--context", "512")


def test_policies_beside_each_other_in_json_and_csv(schedc: Command, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    said = schedc("explore", "smollm2-135m", *SMALL, "--policies", "ring,just_in_time", "--csv", str(table), "--json")
    rows = {row["name"]: row for row in said.json()["rows"]}
    assert rows["ring"]["step_us"] < rows["just_in_time"]["step_us"]
    with table.open() as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["ring", "just_in_time"]


def test_the_plan_of_a_search_is_compiled_as_it_was_found(schedc: Command, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.yaml", tmp_path / "out"
    search = ("--policy", "search", "--rounds", "1", "--steps", "500", "--seed", "5", "-o", str(plan), "--ablate")
    found = schedc("explore", "smollm2-135m", *SMALL, *search, "--json").json()
    step = next(row["step_us"] for row in found["rows"] if row["name"] == "search")
    assert found["ablations"]["of"] == "search"
    assert step < min(row["step_us"] for row in found["rows"] if row["name"] != "search")
    compiled = schedc("compile", "smollm2-135m", "--plan", str(plan), "--no-check", "-o", str(out), "--json").json()
    assert compiled["cost"]["step_us"] == step


def test_a_plan_for_something_else_is_refused(schedc: Command, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    search = ("--policy", "search", "--rounds", "0", "-o", str(plan), "--no-prove")
    schedc("explore", "smollm2-135m", *SMALL, *search)
    refused = schedc("compile", "smollm2-135m", "--plan", str(plan), "--rows", "2")
    assert refused.code == 2
    assert "is for rows 1, not 2" in refused.err
    refused = schedc("compile", "smollm2-135m", "--plan", str(plan), "--policy", "double_buffer")
    assert refused.code == 2
    assert "leave --policy and --set out" in refused.err
    refused = schedc("compile", "smollm2-135m", "--plan", "smol")
    assert (refused.code, "no plan is called 'smol'" in refused.err) == (2, True)


def test_a_plan_is_written_of_a_search_alone(schedc: Command) -> None:
    refused = schedc("explore", "smollm2-135m", *SMALL, "-o", "plan.yaml")
    assert refused.code == 2
    assert "--output is for the plan of a search" in refused.err


def test_what_cannot_be_written_or_is_no_policy_is_said_before_anything_is_searched(
    schedc: Command, tmp_path: Path
) -> None:
    search = ("explore", "smollm2-135m", *SMALL, "--policy", "search", "--rounds", "1000000")
    for option in ("-o", "--csv", "--plot", "--state"):
        refused = schedc(*search, option, str(tmp_path / "no" / "file.png"))
        assert (refused.code, "there is no folder" in refused.err) == (2, True)
    refused = schedc(*search, "--policies", "ring,rung")
    assert refused.code == 2
    assert "no policy is called 'rung'; did you mean ring?" in refused.err
    refused = schedc(*search, "--policies", ",")
    assert (refused.code, "--policies ,: names none; there are ring, " in refused.err) == (2, True)
    refused = schedc(*search, "-o", "plan.txt")
    assert (refused.code, "plan.txt: a plan is written as .yaml, .yml" in refused.err) == (2, True)
    refused = schedc(*search, "-o", "plan.yaml", "--state", "./plan.yaml")
    assert (refused.code, "cannot be written by --output and --state; name two" in refused.err) == (2, True)


def test_what_a_search_varies_is_refused_without_one(schedc: Command) -> None:
    refused = schedc("explore", "smollm2-135m", *SMALL, "--policies", "ring", "--vary", "wire")
    assert (refused.code, "--vary wire: is for a search" in refused.err) == (2, True)


@pytest.mark.parametrize("option, most", [("--skew-ns", "1000000000"), ("--clock-mhz", "100000")])
def test_a_prediction_assumes_no_infinite_figure(schedc: Command, option: str, most: str) -> None:
    refused = schedc("explore", "smollm2-135m", *SMALL, "--policies", "ring", option, "inf", "--json")
    assert refused.code == 2
    assert f"less than or equal to {most}" in json.loads(refused.out)["error"]["message"]


def test_seeds_are_not_negative(schedc: Command) -> None:
    asked = ("gpt-oss-20b", "--devices", "8", "--context", "128", "--policies", "ring", "--routing", "zipf:1.1")
    refused = schedc("explore", *asked, "--routing-seed", "-1")
    assert (refused.code, "--routing-seed" in refused.err) == (2, True)


def test_settings_of_the_command_line_have_a_row_of_their_own(schedc: Command) -> None:
    plain = ("explore", "smollm2-135m", *SMALL, "--policies", "ring", "--json")
    rows = {row["name"]: row["step_us"] for row in schedc(*plain, "--set", "depth=2").json()["rows"]}
    assert set(rows) == {"ring", "ring depth=2"}
    assert rows["ring"] < rows["ring depth=2"]
    listed = [
        row["name"]
        for row in schedc(*plain[:-2], "ring,just_in_time", "--policy", "just_in_time", "--json").json()["rows"]
    ]
    assert sorted(listed) == ["just_in_time", "ring"]
