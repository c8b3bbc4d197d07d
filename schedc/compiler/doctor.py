"""Is everything here that schedc needs? Versions, what is missing, and whether the TPU compiler works."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

State = Literal["ok", "missing", "broken"]

CHIP = "tpu7x:2x2x1"

PROGRAM = """\
program doctor_decode {
  pool work rows=8
  buffer tile in work rows=8 at 0
  hbm source rows=8 input
  hbm result rows=8 output
  semaphore arrived dma
  start source[0 +: 8] -> tile[0 +: 8] signals arrived
  wait arrived rows=8
  start tile[0 +: 8] -> result[0 +: 8] signals arrived
  wait arrived rows=8
}
"""
"""The smallest kernel that moves something."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `needed`: without it schedc does not do its main work; `repair`: what helps."""

    name: str
    state: State
    said: str
    needed: bool = True
    repair: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(timeout: float, say: Callable[[str], None] = lambda stage: None) -> Iterator[Finding]:
    """Every finding, the slow one last; `timeout` are the seconds that the TPU compiler has."""
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Finding("schedc", "ok", version("schedc"))
    yield from _packages()
    yield from _extras()
    yield _cache()
    yield _compiler(timeout, say)


def _packages() -> Iterator[Finding]:
    for name, wanted in _requirements(None):
        yield _package(name, wanted)


def _package(name: str, wanted: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "missing", f"not installed, wanted {wanted}", repair=f"pip install '{wanted}'")


def _extras() -> Iterator[Finding]:
    """An extra is there if all its packages are."""
    for extra in metadata("schedc").get_all("Provides-Extra") or ():
        absent = [name for name, _ in _requirements(extra) if _package(name, name).state == "missing"]
        if absent:
            said, repair = f"without {', '.join(absent)}", f"pip install 'schedc[{extra}]'"
            yield Finding(f"extra {extra}", "missing", said, needed=False, repair=repair)
        else:
            yield Finding(f"extra {extra}", "ok", ", ".join(name for name, _ in _requirements(extra)), needed=False)


def _requirements(extra: str | None) -> Iterator[tuple[str, str]]:
    """(package, requirement) of schedc itself or of an extra, each once, as far as they are for this machine."""
    from packaging.requirements import Requirement

    seen: set[str] = set()
    for text in requires("schedc") or ():
        wanted = Requirement(text)
        belongs = re.search(r"extra\s*==", text) is not None
        if belongs != (extra is not None) or wanted.name in seen:
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra or ""}):
            seen.add(wanted.name)
            yield wanted.name, f"{wanted.name}{wanted.specifier}"


def _cache() -> Finding:
    from schedc.cache.folder import cache_folder

    folder = cache_folder()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if os.access(there, os.W_OK):
        return Finding("cache folder", "ok", str(folder), needed=False)
    return Finding("cache folder", "broken", f"{folder} cannot be written", needed=False, repair="set XDG_CACHE_HOME")


def _compiler(timeout: float, say: Callable[[str], None]) -> Finding:
    from schedc.backends.pallas.aot.compile import compile_kernel
    from schedc.backends.pallas.aot.failure import CompileFailed
    from schedc.backends.pallas.emit.kernel import emit
    from schedc.ir.text_parse import parse_program

    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="schedc-doctor-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(emit(parse_program(PROGRAM)).source, encoding="utf-8")
        try:
            made = compile_kernel(path, CHIP, timeout=timeout, progress=say)
        except CompileFailed as error:
            repair = "pip install 'jax[tpu]'; it needs Linux on x86-64, but no TPU"
            return Finding("TPU compiler", "broken", str(error).splitlines()[0], repair=repair)
    code = f"{made.code_bytes:,} bytes of code"
    return Finding("TPU compiler", "ok", f"compiles for {CHIP} in {perf_counter() - began:.1f} s, {code}")
