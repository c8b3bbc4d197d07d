"""A command that is told to end leaves nothing half-written, and says so by its exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_compilation_that_is_terminated_leaves_no_draft(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schedc.cli.main", "compile", "gpt-oss-20b", "--no-check", "-o", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + signal.SIGTERM, ""), error
    assert list(tmp_path.iterdir()) == []


def terminated_in_a_policy(folder: Path, *options: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a compilation whose policy sleeps when it is told to end."""
    (folder / "slow.py").write_text(
        "import pathlib, time\n"
        "def policy(problem):\n"
        "    pathlib.Path('reached').touch()\n"
        "    time.sleep(60)\n"
    )  # fmt: skip
    command = [sys.executable, "-m", "schedc", "compile", "smollm2-135m", "--policy", "slow.py:policy", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (folder / "reached").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=30)
    return process.returncode, out, error


def test_a_policy_does_not_hold_up_a_termination(tmp_path: Path) -> None:
    assert terminated_in_a_policy(tmp_path) == (128 + signal.SIGTERM, "", "terminated\n")


def test_a_termination_is_told_to_who_asked_for_json(tmp_path: Path) -> None:
    code, out, error = terminated_in_a_policy(tmp_path, "--json")
    assert (code, json.loads(out)["error"]["kind"], error) == (128 + signal.SIGTERM, "terminated", "terminated\n")


def test_a_termination_that_is_swallowed_is_told_again(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "import schedc.cli.main as command\n"
        "command.AGAIN_SECONDS = 0.2\n"
        "def app(**options):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(10)\n"
        "    except BaseException:\n"
        "        pass\n"
        "    time.sleep(60)\n"
        "command.app = app\n"
        "command.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, "")


def test_a_callback_that_swallows_a_termination_does_not_undo_it() -> None:
    code = (
        "import os, signal, time\n"
        "import schedc.cli.main as command\n"
        "def app(**options):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(10)\n"
        "    except BaseException:\n"
        "        raise RuntimeError('no compiled object yet') from None\n"
        "command.app = app\n"
        "command.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, "")
