"""Compile a kernel file with the real TPU compiler."""

from pathlib import Path

from .process import Progress, run_worker
from .report import CompileReport


def compile_kernel(
    kernel_path: Path | str,
    topology_name: str,
    devices_used: int = 1,
    *,
    dump: bool = True,
    timeout: float = 600,
    annotate: bool = True,
    progress: Progress | None = None,
) -> CompileReport:
    """Compile `kernel.py` for the first `devices_used` devices of a topology such as `tpu7x:2x2x1`.

    Without `dump` the report has no schedule and no allocations, without `annotate` no source lines. `progress` is
    called with each stage: load, lower, compile, read. Raises CompileFailed, also when the compiler crashes or gives
    no answer in `timeout` seconds.
    """
    request = {
        "task": "compile",
        "kernel": str(Path(kernel_path).resolve()),
        "topology": topology_name,
        "devices_used": devices_used,
        "annotate": annotate,
    }
    return CompileReport.from_dict(run_worker(request, dump=dump, timeout=timeout, progress=progress))
