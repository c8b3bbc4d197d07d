"""Compile the kernel beside this file for a TPU that need not be there: python run.py

Needs jax and libtpu alone. Exit code 1 if the compiler refuses it.
"""

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
CASE = json.loads((HERE / "case.json").read_text(encoding="utf-8"))
os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402


def main() -> int:
    kernel: Any = ModuleType("kernel")
    exec(compile((HERE / "kernel.py").read_text(encoding="utf-8"), str(HERE / "kernel.py"), "exec"), kernel.__dict__)
    devices = topologies.get_topology_desc(platform="tpu", topology_name=CASE["topology"]).devices[: CASE["devices"]]
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in kernel.ARGUMENTS.values()]
    try:
        kernel.decode_step(mesh).lower(*arguments).compile()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print("it compiles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
