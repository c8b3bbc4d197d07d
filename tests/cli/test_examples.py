"""The examples do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from schedc.ir.program import Phase, Start, walk
from schedc.ir.text_parse import parse_program

from .conftest import Command
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


def test_a_policy_of_ones_own_reorders_and_defers(schedc: Command) -> None:
    policy = f"{EXAMPLES / 'my_policy.py'}:waits_last"
    said = schedc("compile", "kimi-k3-mini", "--devices", "4", "--policy", policy, "--no-check", "-o", "out")
    assert said.code == 0, said.err
    program = parse_program(Path("out/program.ir").read_text())
    phases = {op.name: op for op in walk(program.body) if isinstance(op, Phase)}
    names = list(phases)
    assert names.index("shared_down_1_0") < names.index("entry_join_1_0")  # The wait for the router's scores.
    deferred = [op for op in walk(phases["expert_latent_norm_in_1_0"].body) if isinstance(op, Start)]
    assert {"experts_slot", "weights_slot"} <= {op.target.storage for op in deferred}


def test_a_policy_of_ones_own_has_settings(schedc: Command) -> None:
    policy = f"{EXAMPLES / 'my_policy.py'}:late_cache"
    said = schedc("compile", "smollm2-135m", "--policy", policy, "--set", "kv_tokens=32", "--no-check", "-o", "out")
    assert said.code == 0, said.err
    phases = [op for op in walk(parse_program(Path("out/program.ir").read_text()).body) if isinstance(op, Phase)]
    fetching = [
        (phase.name, op.target.rows)
        for phase in phases
        for op in walk(phase.body)
        if isinstance(op, Start) and op.target.storage.startswith("kv_new")
    ]
    assert fetching == [("attend", 48)]  # 3 heads of 32 tokens, two to a word.


@pytest.mark.kernel
@pytest.mark.slow
def test_text_is_generated(tmp_path: Path) -> None:
    lines = output("generate_text.py", "The capital of France is", "1", folder=tmp_path)
    assert lines == ["The capital of France is Paris"]
