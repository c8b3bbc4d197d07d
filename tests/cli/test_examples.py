"""The examples do what they say."""

import subprocess
import sys
from pathlib import Path

from .test_bad_input import config

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_policies_are_compared_in_python(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "compile_from_config.py"), config("Qwen3-0.6B.json")]
    lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    steps = [float(line.split()[1].replace(",", "")) for line in lines[:-1]]
    assert len(steps) >= 3 and steps == sorted(steps)
    assert lines[-1] == f"wrote kernel.py with policy {lines[0].split(':')[0].strip()}"
    assert (tmp_path / "kernel.py").read_text().startswith('"""')
