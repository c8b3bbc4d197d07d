"""A folder that was damaged, moved or tampered with: said where and what, with exit code 2, and never a traceback."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, refused

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_policy.py"


@pytest.fixture
def folder(schedc: Command, tmp_path: Path) -> Path:
    assert schedc("compile", "smollm2-135m", "--no-check", "-o", "out").code == 0
    return tmp_path / "out"


@pytest.mark.parametrize("command", ["kernel", "llo"])
def test_without_its_kernel(schedc: Command, folder: Path, command: str) -> None:
    (folder / "kernel.py").unlink()
    assert "kernel.py: cannot be read: No such file" in refused(schedc("inspect", command, "out"))
    (folder / "kernel.py").mkdir()
    assert "kernel.py: cannot be read: Is a directory" in refused(schedc("inspect", command, "out"))


@pytest.mark.parametrize("command", ["phases", "placement", "decisions", "timeline"])
def test_with_a_program_that_is_none(schedc: Command, folder: Path, command: str) -> None:
    program = folder / "program.ir"
    program.write_text("")
    assert "program.ir: is not a program: line 1, column 1: expected `program`" in refused(
        schedc("inspect", command, "out")
    )
    program.write_bytes(b"program \xff {")
    assert "program.ir: is not text: byte 8 is not UTF-8" in refused(schedc("inspect", command, "out"))


def test_a_kernel_that_is_not_that_of_the_program_has_no_bundles(schedc: Command, folder: Path) -> None:
    (folder / "kernel.py").write_text("print(1)\n")
    assert "kernel.py is not the kernel of program.ir" in refused(schedc("inspect", "llo", "out"))


@pytest.mark.parametrize("key", ["target", "policy", "settings", "rows"])
def test_a_manifest_that_lacks_something(schedc: Command, folder: Path, key: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest[key]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert f"manifest.json: has no {key}; compile again" in refused(schedc("inspect", "phases", "out"))


def test_decisions_of_a_folder_are_those_that_it_was_compiled_with(schedc: Command, folder: Path) -> None:
    log = folder / "decisions.json"
    data = json.loads(log.read_text())
    data[0]["chosen"] = "as it was then"
    log.write_text(json.dumps(data))
    assert schedc("inspect", "decisions", "out", "--json").json() == data
    for bad in ("", '{"kind": 1}', '[{"kind": "policy"}]'):
        log.write_text(bad)
        assert "decisions.json: is not a log of decisions" in refused(schedc("inspect", "decisions", "out"))


def test_a_folder_does_not_need_the_policy_file_it_was_compiled_with(schedc: Command, tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(EXAMPLE.read_text())
    asked = ("smollm2-135m", "--policy", f"{policy}:late_cache")
    assert schedc("compile", *asked, "--no-check", "-o", "out").code == 0
    before = schedc("explain", "fit", *asked, "--json").json()
    policy.unlink()
    assert schedc("explain", "fit", "out", "--json").json() == before
    assert schedc("inspect", "decisions", "out").code == 0
