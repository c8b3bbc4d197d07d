"""Run the worker: one kernel, one process, because libtpu reads its flags once a process and because it may crash."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .environment import compiler_environment
from .failure import CompileFailed, Failure

Progress = Callable[[str], None]


def run_worker(request: dict[str, Any], *, dump: bool, timeout: float, progress: Progress | None = None) -> Any:
    """The worker's answer to a request about `request["kernel"]`. Raises CompileFailed, also for a crash."""
    with tempfile.TemporaryDirectory(prefix="schedc-aot-") as name:
        folder = Path(name)
        answer, log, dumps = folder / "answer.json", folder / "log.txt", folder / "dumps"
        dumps.mkdir()
        question = folder / "request.json"
        question.write_text(json.dumps({**request, "answer": str(answer), "dumps": str(dumps) if dump else None}))
        environment = os.environ | compiler_environment(dumps if dump else None)
        stage, code, timed_out = _run(question, log, environment, timeout, progress)
        if answer.exists():
            result = json.loads(answer.read_text())
            if "failure" in result:
                raise CompileFailed(request["kernel"], Failure.from_dict(result["failure"]))
            return result["result"]
        reason = f"no answer after {timeout:g} seconds" if timed_out else f"the process ended with {_ending(code)}"
        raise CompileFailed(request["kernel"], Failure(stage, reason, (), log.read_text(errors="replace")))


def _run(
    question: Path, log: Path, environment: dict[str, str], timeout: float, progress: Progress | None
) -> tuple[str, int, bool]:
    """The last stage the worker entered, its exit code, and whether the time ran out."""
    command = [sys.executable, "-m", "schedc.backends.pallas.aot.worker", str(question)]
    stage, timed_out = "start", threading.Event()
    with log.open("w") as errors:
        worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)

    def stop() -> None:
        timed_out.set()
        worker.kill()

    clock = threading.Timer(timeout, stop)
    clock.start()
    try:
        assert worker.stdout is not None
        for line in worker.stdout:
            if line.startswith("stage "):
                stage = line.split()[1]
                if progress:
                    progress(stage)
        return stage, worker.wait(), timed_out.is_set()
    finally:
        clock.cancel()
        worker.kill()
        worker.wait()
        if worker.stdout:
            worker.stdout.close()


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
