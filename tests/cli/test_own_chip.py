"""A folder that was compiled for a chip file of one's own keeps that chip: its file may be gone or have changed."""

import json
from pathlib import Path

import pytest

from schedc.compiler.output import read_output
from schedc.target.load import is_packaged, load_chip
from tests.cli.conftest import Command, refused

SLOW = "base: tpu7x\ncost: {clock_mhz: {value: 500, source: an experiment}}\n"


@pytest.fixture
def folder(schedc: Command, tmp_path: Path) -> Path:
    """Of a chip of a quarter of the clock, whose file is gone."""
    chip = tmp_path / "slow.yaml"
    chip.write_text(SLOW)
    assert schedc("compile", "smollm2-135m", "--no-check", "--target", "./slow.yaml:2x2x1", "-o", "out").code == 0
    chip.unlink()
    return tmp_path / "out"


def test_it_is_looked_at_and_explained_on_that_chip(schedc: Command, folder: Path) -> None:
    target = read_output(folder).target
    assert (target.name, target.cost.clock_mhz, target.topology) == ("slow:2x2x1", 500, (2, 2, 1))
    step_us = json.loads((folder / "report.json").read_text())["cost"]["step_us"]
    assert schedc("compile", "smollm2-135m", "--no-check", "-o", "fast").code == 0
    assert json.loads((folder.with_name("fast") / "report.json").read_text())["cost"]["step_us"] < step_us / 2
    explained = schedc("explain", "step", "out", "--json")
    assert explained.code == 0 and explained.json()["step_us"] == pytest.approx(step_us)
    for command in (("inspect", "phases"), ("inspect", "placement"), ("inspect", "timeline")):
        assert schedc(*command, "out").code == 0
    assert schedc("diff", "out", "fast").code == 0


def test_its_program_is_checked_and_emitted_for_that_chip(schedc: Command, folder: Path) -> None:
    assert "program.ir: proven safe on slow:2x2x1: " in schedc("check", "out/program.ir").out
    assert schedc("emit", "out/program.ir", "-o", "-").out == (folder / "kernel.py").read_text()
    elsewhere = folder.with_name("mine.ir")
    elsewhere.write_text((folder / "program.ir").read_text())
    assert "mine.ir: attribute target: unknown target 'slow'" in refused(schedc("check", "mine.ir"))


def test_what_differs_between_two_chips_of_its_name_is_told(schedc: Command, folder: Path) -> None:
    folder.with_name("slow.yaml").write_text(SLOW.replace("500", "600"))
    assert schedc("compile", "smollm2-135m", "--no-check", "--target", "./slow.yaml", "-o", "later").code == 0
    said = schedc("diff", "out", "later").out
    assert "chip.cost.clock_mhz: 500.0 -> 600.0\n" in said
    assert said.count("chip.") == 1


def test_a_chip_that_comes_with_schedc_is_not_kept(schedc: Command, tmp_path: Path) -> None:
    assert schedc("compile", "smollm2-135m", "--no-check", "-o", "out").code == 0
    assert "chip" not in json.loads((tmp_path / "out" / "manifest.json").read_text())


def test_a_chip_of_the_same_name_with_another_figure_is_not_that_which_comes_with_schedc() -> None:
    chip = load_chip("tpu7x")
    changed = chip.model_copy(update={"cost": chip.cost.model_copy(update={"clock_mhz": 500.0})})
    assert is_packaged(chip) and not is_packaged(changed)


def test_a_kept_chip_that_is_none_and_a_target_that_is_not_known_are_refused(schedc: Command, folder: Path) -> None:
    manifest = folder / "manifest.json"
    data = json.loads(manifest.read_text())
    data["chip"]["cost"]["clock_mhz"] = 0
    manifest.write_text(json.dumps(data))
    said = refused(schedc("inspect", "phases", "out"))
    assert "manifest.json: its chip cannot be used:" in said and "cost.clock_mhz" in said and "compile again" in said
    del data["chip"]
    manifest.write_text(json.dumps(data))
    assert "manifest.json: unknown target 'slow'" in refused(schedc("explain", "step", "out"))
