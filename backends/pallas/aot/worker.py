"""The process in which libtpu compiles one kernel: `python -m schedc.backends.pallas.aot.worker request.json`.

A process of its own, because libtpu reads its flags once a process, and because the compiler may crash. It prints
`stage …` lines, and writes `{"report": …}` or `{"failure": …}` to the file that the request names.
"""

import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

from .bundles import branches_of, cycles_by_line, cycles_of, read_bundles, transfers_of
from .failure import failure_of
from .hlo import copies_of
from .load import HELPERS, arguments_of, load_kernel
from .program import allocations_of, loops_of, operands_of, spills_of
from .report import CompileReport, Seconds, Versions


def main(request_file: str) -> None:
    request = json.loads(Path(request_file).read_text())
    stage = "load"

    def enter(name: str) -> None:
        nonlocal stage
        stage = name
        print("stage", name, flush=True)

    try:
        answer = {"report": _compile(request, enter).to_dict()}
    except Exception as error:
        answer = {"failure": failure_of(error, stage, request["kernel"]).to_dict()}
    Path(request["answer"]).write_text(json.dumps(answer))


def _compile(request: dict[str, Any], enter: Any) -> CompileReport:
    enter("load")
    import jax
    import numpy as np
    from jax.experimental import topologies

    from .. import compat

    if request["annotate"]:
        compat.exact_locations(HELPERS)
    path = Path(request["kernel"])
    kernel = load_kernel(path)
    topology = topologies.get_topology_desc(platform="tpu", topology_name=request["topology"])
    mesh = jax.sharding.Mesh(np.array(topology.devices[: request["devices_used"]]), ("device",))

    enter("lower")
    began = time.perf_counter()
    lowered = kernel.decode_step(mesh).lower(*arguments_of(kernel))
    lowered_at = time.perf_counter()

    enter("compile")
    annotations = {"xla_mosaic_enable_llo_source_annotations": "true"} if request["annotate"] else {}
    compiled = lowered.compile(compiler_options=annotations)
    compiled_at = time.perf_counter()

    enter("read")
    memory = compiled.memory_analysis()
    return CompileReport(
        kernel=kernel.NAME,
        topology=request["topology"],
        devices_used=request["devices_used"],
        versions=Versions(*(importlib.metadata.version(name) for name in ("jax", "jaxlib", "libtpu"))),
        seconds=Seconds(lowered_at - began, compiled_at - lowered_at),
        code_bytes=memory.generated_code_size_in_bytes,
        temp_bytes=memory.temp_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        copies=copies_of(compiled.as_text()),
        **(_read_dumps(Path(request["dumps"]), kernel.NAME, str(path)) if request["dumps"] else {}),
    )


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
