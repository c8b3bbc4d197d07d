"""Compile a kernel file with the real TPU compiler."""

from pathlib import Path

from .process import Progress, run_worker
from .report import CompileReport


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
) -> CompileReport:
    """Compile `kernel.py` for the first `devices_used` devices of a topology such as `tpu7x:2x2x1`.

    With more than one of `steps` that is the call of so many, `decode_steps`. Without `dump` the report has no schedule
    and no allocations, without `annotate` no source lines. `progress` is called with each stage: load, lower, compile,
    read. Raises CompileFailed, also when the compiler crashes or gives
    no answer in `timeout` seconds.
    """
    request = {
        "task": "compile",
        "kernel": str(Path(kernel_path).resolve()),
        "topology": topology_name,
        "devices_used": devices_used,
        "steps": steps,
        "annotate": annotate,
    }
    return CompileReport.from_dict(run_worker(request, dump=dump, timeout=timeout, progress=progress))
