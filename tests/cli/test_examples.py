"""The examples do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .test_bad_input import config

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(script: str, *arguments: str, folder: Path) -> list[str]:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_policies_are_compared_in_python(tmp_path: Path) -> None:
    lines = output("compile_from_config.py", config("Qwen3-0.6B.json"), folder=tmp_path)
    steps = [float(line.split()[1].replace(",", "")) for line in lines[:-1]]
    assert len(steps) >= 3 and steps == sorted(steps)
    assert lines[-1] == f"wrote kernel.py with policy {lines[0].split(':')[0].strip()}"
    assert (tmp_path / "kernel.py").read_text().startswith('"""')


def test_orders_of_kimi_k3_are_compared(tmp_path: Path) -> None:
    _, *lines = output("compare_orders_k3.py", folder=tmp_path)
    steps = {tuple(line.split()[:2]): float(line.split()[2].replace(",", "")) for line in lines}
    assert len(steps) == 6
    assert steps["4.0", "8"] < steps["4.0", "2"]


def test_a_timeline_becomes_a_pandas_table(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    lines = output("timeline_to_pandas.py", "smollm2-135m", folder=tmp_path)
    assert re.fullmatch(r"smollm2-135m: a step of [\d,.]+ µs, [\d,]+ events", lines[0])
    assert any("w_head" in line for line in lines)


@pytest.mark.kernel
@pytest.mark.slow
def test_text_is_generated(tmp_path: Path) -> None:
    lines = output("generate_text.py", "The capital of France is", "1", folder=tmp_path)
    assert lines == ["The capital of France is Paris"]
