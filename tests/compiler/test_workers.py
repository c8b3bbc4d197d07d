"""Processes that work for a command: they end with it, or when their time is over."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from schedc.compiler.workers import EndedError, Workers


def run(workers: Workers, code: str, log: Path, seconds: float = 60.0) -> int | None:
    with log.open("w") as output:
        return workers.run([sys.executable, "-c", code], os.environ, output, seconds)


def test_a_worker_ends_by_itself_or_when_its_time_is_over(tmp_path: Path) -> None:
    assert run(Workers(), "print('here'); raise SystemExit(3)", tmp_path / "log") == 3
    assert (tmp_path / "log").read_text() == "here\n"
    assert run(Workers(), "import time; time.sleep(60)", tmp_path / "log", 0.1) is None


def test_all_that_run_end_together_and_no_other_begins(tmp_path: Path) -> None:
    workers, codes = Workers(), list[int | None]()
    sleep = "import pathlib, time; pathlib.Path({!r}).touch(); time.sleep(600)"

    def wait(name: str) -> None:
        codes.append(run(workers, sleep.format(str(tmp_path / name)), tmp_path / f"{name}.log"))

    threads = [threading.Thread(target=wait, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    while not ((tmp_path / "one").exists() and (tmp_path / "other").exists()):
        time.sleep(0.01)
    workers.end()
    for thread in threads:
        thread.join(30)
    assert codes == [-9, -9]
    with pytest.raises(EndedError):
        run(workers, "", tmp_path / "log")
