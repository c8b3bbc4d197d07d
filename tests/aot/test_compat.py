"""The interpreter settings mean the same on both jax lines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Variant

pytestmark = pytest.mark.kernel


def interpreted(kernel: Path) -> dict[str, dict[str, bool]]:
    command = [sys.executable, str(Path(__file__).parent / "interpret.py"), str(kernel)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    answer: dict[str, dict[str, bool]] = json.loads(run.stdout.splitlines()[-1])
    return answer


def test_a_right_kernel_gives_the_exact_values_and_no_race(layers: Path) -> None:
    right = {"equal": True, "races": False, "races_after_reset": False}
    assert interpreted(layers) == {"eager": right, "on_wait": right}


def test_a_missing_wait_on_a_reused_slot_is_a_race_when_eager_and_wrong_values_when_on_wait(variant: Variant) -> None:
    found = interpreted(variant(("            wait(cache_out, tiles, TILE, filled.at[slot])\n", "")))
    assert (found["eager"]["races"], found["eager"]["races_after_reset"]) == (True, False)
    assert (found["on_wait"]["equal"], found["on_wait"]["races"]) == (False, False)
