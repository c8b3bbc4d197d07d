"""Export a kernel as a portable artifact."""

import base64
from pathlib import Path

from .process import run_worker


def export_kernel(kernel_path: Path | str, topology_name: str, devices_used: int = 1, *, timeout: float = 600) -> bytes:
    """The kernel as a serialized `jax.export` artifact for TPUs. Needs `flatbuffers`, no TPU.

    `jax.export.deserialize(data).call(*arguments)` runs it on a mesh of `devices_used` devices. Raises CompileFailed.
    """
    request = {
        "task": "export",
        "kernel": str(Path(kernel_path).resolve()),
        "topology": topology_name,
        "devices_used": devices_used,
        "annotate": False,
    }
    return base64.b64decode(run_worker(request, dump=False, timeout=timeout))
