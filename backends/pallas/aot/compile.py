"""Compile a kernel file with the real TPU compiler, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from .environment import compiler_environment
from .failure import CompileFailed, Failure
from .report import CompileReport


def compile_kernel(
    kernel_path: Path | str,
    topology_name: str,
    devices_used: int = 1,
    *,
    dump: bool = True,
    timeout: float = 600,
    annotate: bool = True,
    progress: Callable[[str], None] | None = None,
) -> CompileReport:
    """Compile `kernel.py` for the first `devices_used` devices of a topology such as `tpu7x:2x2x1`.

    Without `dump` the report has no schedule and no allocations, without `annotate` no source lines. `progress` is
    called with each stage: load, lower, compile, read. Raises CompileFailed, also when the compiler crashes or gives
    no answer in `timeout` seconds.
    """
    kernel = Path(kernel_path).resolve()
    with tempfile.TemporaryDirectory(prefix="schedc-aot-") as folder:
        request, answer, log = (Path(folder) / name for name in ("request.json", "answer.json", "log.txt"))
        dumps = Path(folder) / "dumps"
        dumps.mkdir()
        request.write_text(
            json.dumps(
                {
                    "kernel": str(kernel),
                    "topology": topology_name,
                    "devices_used": devices_used,
                    "annotate": annotate,
                    "dumps": str(dumps) if dump else None,
                    "answer": str(answer),
                }
            )
        )
        environment = os.environ | compiler_environment(dumps if dump else None)
        stage, code, timed_out = _run(request, log, environment, timeout, progress)
        if answer.exists():
            result = json.loads(answer.read_text())
            if "report" in result:
                return CompileReport.from_dict(result["report"])
            raise CompileFailed(str(kernel), Failure.from_dict(result["failure"]))
        reason = f"no answer after {timeout:g} seconds" if timed_out else f"the compiler ended with {_ending(code)}"
        raise CompileFailed(str(kernel), Failure(stage, reason, (), log.read_text(errors="replace")))


def _run(
    request: Path, log: Path, environment: dict[str, str], timeout: float, progress: Callable[[str], None] | None
) -> tuple[str, int, bool]:
    """Run the worker; returns the last stage it entered, its exit code, and whether the time ran out."""
    command = [sys.executable, "-m", "schedc.backends.pallas.aot.worker", str(request)]
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
