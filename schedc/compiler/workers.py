"""Processes that work for this one, and end when it no longer waits for them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import IO


class EndedError(Exception):
    """A worker was asked for after the others had been ended."""


class Workers:
    """Of all threads of this process. `end` from another thread lets every `run` return at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], output: IO[str], seconds: float
    ) -> int | None:
        """The exit code; None if it was ended because the time ran out. Raises EndedError behind `end`."""
        with self._lock:
            if self._ended:
                raise EndedError
            worker = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            self._running.add(worker)
        try:
            return worker.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            worker.kill()
            worker.wait()
            with self._lock:
                self._running.discard(worker)

    def end(self) -> None:
        """Kill those that run, and start no more."""
        with self._lock:
            self._ended = True
            for worker in self._running:
                worker.kill()
