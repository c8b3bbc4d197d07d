"""The process in which libtpu works on one kernel: `python -m schedc.backends.pallas.aot.worker request.json`.

It prints a line `stage …` at each stage, and writes `{"result": …}` or `{"failure": …}` to the file that the request
names.
"""

import base64
import gzip
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .bundles import branches_of, cycles_by_line, cycles_of, read_bundles, transfers_of
from .failure import failure_of
from .hlo import copies_of
from .load import HELPERS, arguments_of, load_kernel
from .program import allocations_of, loops_of, operands_of, spills_of
from .report import CompileReport, Seconds, Versions

Enter = Callable[[str], None]


def main(request_file: str) -> None:
    request = json.loads(Path(request_file).read_text())
    stage = "load"

    def enter(name: str) -> None:
        nonlocal stage
        stage = name
        print("stage", name, flush=True)

    try:
        answer = {"result": {"compile": _compile, "export": _export}[request["task"]](request, enter)}
    except Exception as error:
        answer = {"failure": failure_of(error, stage, request["kernel"]).to_dict()}
    Path(request["answer"]).write_text(json.dumps(answer))


def _load(request: dict[str, Any], enter: Enter) -> tuple[ModuleType, Any]:
    """The kernel as a module, and the mesh it is to run on."""
    enter("load")
    import jax
    import numpy as np
    from jax.experimental import topologies

    from .. import compat

    if request["annotate"]:
        compat.exact_locations(HELPERS)
    topology = topologies.get_topology_desc(platform="tpu", topology_name=request["topology"])
    used = request["devices_used"]
    if not 1 <= used <= len(topology.devices):
        raise ValueError(f"{request['topology']} has {len(topology.devices)} devices, {used} are to be used")
    return load_kernel(Path(request["kernel"])), jax.sharding.Mesh(np.array(topology.devices[:used]), ("device",))


def _export(request: dict[str, Any], enter: Enter) -> str:
    kernel, mesh = _load(request, enter)
    from jax import export

    enter("export")
    exported = export.export(kernel.decode_step(mesh), platforms=["tpu"])(*arguments_of(kernel))
    return base64.b64encode(exported.serialize()).decode()


def _compile(request: dict[str, Any], enter: Enter) -> dict[str, Any]:
    kernel, mesh = _load(request, enter)

    enter("lower")
    began = _now()
    steps = request["steps"]
    step = kernel.decode_step(mesh) if steps == 1 else kernel.decode_steps(mesh, steps)
    lowered = step.lower(*arguments_of(kernel))
    lowered_at = _now()

    enter("compile")
    annotations = {"xla_mosaic_enable_llo_source_annotations": "true"} if request["annotate"] else {}
    compiled = lowered.compile(compiler_options=annotations)
    compiled_at = _now()

    enter("read")
    memory = compiled.memory_analysis()
    report = CompileReport(
        kernel=kernel.NAME,
        topology=request["topology"],
        devices_used=request["devices_used"],
        versions=Versions(*(importlib.metadata.version(name) for name in ("jax", "jaxlib", "libtpu"))),
        seconds=Seconds(_between(began, lowered_at), _between(lowered_at, compiled_at)),
        code_bytes=memory.generated_code_size_in_bytes,
        temp_bytes=memory.temp_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        copies=copies_of(compiled.as_text()),
        **(_read_dumps(Path(request["dumps"]), kernel.NAME, request["kernel"]) if request["dumps"] else {}),
    )
    if request["dumps"] and request.get("bundles"):
        text = _dump(Path(request["dumps"]), kernel.NAME, "packed-bundles-post-ra")
        named = text.replace(json.dumps(request["kernel"]), '"kernel.py"')
        Path(request["bundles"]).write_bytes(gzip.compress(named.encode(), mtime=0))
    return report.to_dict()


def _now() -> tuple[float, float]:
    """Seconds on the wall, and of the processors for this process."""
    return time.perf_counter(), time.process_time()


def _between(began: tuple[float, float], ended: tuple[float, float]) -> float:
    return min(end - begin for begin, end in zip(began, ended, strict=True))


def _read_dumps(folder: Path, name: str, kernel_file: str) -> dict[str, Any]:
    bundles = read_bundles(_dump(folder, name, "packed-bundles-post-ra"))
    original = _dump(folder, name, "original")
    return {
        "allocations": allocations_of(original) + spills_of(bundles),
        "operands": operands_of(original),
        "cycles": cycles_of(_dump(folder, name, "schedule-analysis_packed-bundles-post-ra")),
        "transfers": transfers_of(bundles, kernel_file),
        "loops": loops_of(original, kernel_file),
        "branches": branches_of(bundles, kernel_file),
        "line_cycles": cycles_by_line(bundles, kernel_file),
    }


def _dump(folder: Path, name: str, label: str) -> str:
    """The text of the dump `<ns>-<name>.<n>-<seq>-<label>.txt`."""
    found = sorted(folder.glob(f"*-{name}.[0-9]*-[0-9]*-{label}.txt"))
    if not found:
        raise FileNotFoundError(
            f"libtpu wrote no {label} dump for a kernel named {name}; it wrote "
            f"{', '.join(sorted(path.name for path in folder.iterdir())) or 'nothing'}"
        )
    return found[-1].read_text()


if __name__ == "__main__":
    main(sys.argv[1])
