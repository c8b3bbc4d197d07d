"""The command in a process of its own: streams that cannot be written, or not in UTF-8."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def said(*arguments: str, stdout: int | None = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "schedc", *arguments]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=os.environ | environment, encoding="latin-1"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [("models",), ("models", "--json")], ids=" ".join)
def test_a_full_disk_is_told_in_a_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        found = said(*arguments, stdout=full.fileno())
    assert (found.returncode, found.stderr) == (1, "error: cannot write: No space left on device\n")


def test_what_an_encoding_does_not_have_is_a_question_mark(tmp_path: Path) -> None:
    found = said("compile", "smollm2-135m", "--no-check", "-o", str(tmp_path / "out"), PYTHONIOENCODING="ascii")
    assert (found.returncode, found.stderr) == (0, "")
    assert "predicted step" in found.stdout and " ?s at position" in found.stdout


def test_kernels_are_the_same_in_every_locale(tmp_path: Path) -> None:
    kernels = []
    settings = ({"PYTHONUTF8": "1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    for number, environment in enumerate(settings):
        out = tmp_path / str(number)
        assert said("compile", "smollm2-135m", "--no-check", "-o", str(out), **environment).returncode == 0
        kernels.append((out / "kernel.py").read_bytes())
    assert kernels[0] == kernels[1]
