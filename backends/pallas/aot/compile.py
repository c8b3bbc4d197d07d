"""Compile a kernel file with the real TPU compiler."""

import gzip
import importlib.metadata
import os
import tempfile
from pathlib import Path
from typing import Any

from schedc.cache.keys import code_digest, key_of
from schedc.cache.store import Store

from .process import Progress, run_worker
from .report import CompileReport

KIND = "compile"
"""Of what is kept in the cache."""
BUNDLES = "bundles.txt.gz"
_VERSIONS = ("jax", "jaxlib", "libtpu")
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


def compile_kernel(
    kernel_path: Path | str,
    topology_name: str,
    devices_used: int = 1,
    *,
    steps: int = 1,
    dump: bool = True,
    timeout: float = 600,
    annotate: bool = True,
    progress: Progress | None = None,
    store: Store | None = None,
) -> CompileReport:
    """Compile `kernel.py` for the first `devices_used` devices of a topology such as `tpu7x:2x2x1`.

    With more than one of `steps` that is the call of so many, `decode_steps`. Without `dump` the report has no schedule
    and no allocations, without `annotate` no source lines. `progress` is called with each stage: load, lower, compile,
    read. What `store` has of the same kernel, compiler and flags is not compiled again. Raises CompileFailed, also when
    the compiler crashes or gives no answer in `timeout` seconds.
    """
    request = _request(Path(kernel_path), topology_name, devices_used, steps, annotate)
    if store is None:
        return CompileReport.from_dict(run_worker(request, dump=dump, timeout=timeout, progress=progress))
    return _kept(request, dump, timeout, progress, store)[0]


def compile_with_bundles(
    kernel_path: Path | str,
    topology_name: str,
    devices_used: int = 1,
    *,
    timeout: float = 600,
    progress: Progress | None = None,
    store: Store | None = None,
) -> tuple[CompileReport, str]:
    """Also the text of the final bundles, for `read_bundles`; in it the kernel's file is called `kernel.py`."""
    request = _request(Path(kernel_path), topology_name, devices_used, 1, True)
    report, bundles = _kept(request, True, timeout, progress, store)
    return report, gzip.decompress(bundles).decode()


def _request(path: Path, topology: str, devices: int, steps: int, annotate: bool) -> dict[str, Any]:
    return {
        "task": "compile",
        "kernel": str(path.resolve()),
        "topology": topology,
        "devices_used": devices,
        "steps": steps,
        "annotate": annotate,
    }


def _kept(
    request: dict[str, Any], dump: bool, timeout: float, progress: Progress | None, store: Store | None
) -> tuple[CompileReport, bytes]:
    """The report and, with `dump`, the compressed bundles; from the store if it has them, else into it."""
    key = _key(request, dump)
    if store is not None:
        kept = store.get(KIND, key)
        bundles = store.file(KIND, key, BUNDLES) if dump else b""
        if kept is not None and bundles is not None:
            return CompileReport.from_dict(kept), bundles
    with tempfile.TemporaryDirectory(prefix="schedc-bundles-") as folder:
        path = Path(folder) / BUNDLES
        asked = request | {"bundles": str(path) if dump else None}
        result = run_worker(asked, dump=dump, timeout=timeout, progress=progress)
        bundles = path.read_bytes() if dump else b""
    report = CompileReport.from_dict(result)
    if store is not None:
        store.put(KIND, key, result, f"{report.kernel} for {report.topology}", {BUNDLES: bundles} if dump else None)
    return report, bundles


def _key(request: dict[str, Any], dump: bool) -> str:
    """The kernel's text stands for its path."""
    here = Path(__file__).parent
    parts = {name: value for name, value in request.items() if name != "kernel"}
    return key_of(
        parts
        | {
            "dump": dump,
            "source": Path(request["kernel"]).read_text(encoding="utf-8"),
            "versions": {name: importlib.metadata.version(name) for name in _VERSIONS},
            "flags": {name: os.environ.get(name) for name in _FLAGS},
            "reader": code_digest(here, here.parent / "compat.py"),
        }
    )
