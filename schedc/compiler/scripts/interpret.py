"""Call the kernel beside this file once, interpreted, and compare its logits with the expected ones.

    python run.py [eager|on_wait] [--races] [--save]

`--save` keeps all outputs of the kernel in results.npz: int32[devices · rows, 128] each, most of them the bits of f32.
Needs jax and numpy alone. Exit code 1 if they differ by more than the limit, or are no numbers.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
CASE = json.loads((HERE / "case.json").read_text(encoding="utf-8"))
os.environ["JAX_PLATFORMS"] = "cpu"
if CASE["devices"] > 1:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={CASE['devices']}"
    os.environ["NPROC"] = "64"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402


def main() -> int:
    arguments = sys.argv[1:]
    mode = next((argument for argument in arguments if argument in ("eager", "on_wait")), CASE["mode"])
    settings: dict[str, Any] = {
        "dma_execution_mode": mode,
        "detect_races": "--races" in arguments,
        "uninitialized_memory": "nan",
        "vector_clock_size": 256,
    }
    if "on_race" in {field.name for field in dataclasses.fields(pltpu.InterpretParams)}:
        settings["on_race"] = "warn"
    jax.config.update("jax_disable_most_optimizations", True)
    kernel: Any = ModuleType("kernel")
    exec(compile((HERE / "kernel.py").read_text(encoding="utf-8"), str(HERE / "kernel.py"), "exec"), kernel.__dict__)
    mesh = Mesh(np.array(jax.devices()[: CASE["devices"]]), ("device",))
    step = kernel.decode_step(mesh, interpret=pltpu.InterpretParams(**settings))
    inputs = np.load(HERE / "inputs.npz")
    divided = NamedSharding(mesh, PartitionSpec("device") if CASE["devices"] > 1 else PartitionSpec())
    given = [
        jax.device_put(inputs[name], divided) if inputs[name].ndim == 2 else inputs[name] for name in kernel.ARGUMENTS
    ]
    results = dict(zip(kernel.OUTPUTS, map(np.asarray, step(*given)), strict=True))
    if "--save" in arguments:
        np.savez(HERE / "results.npz", **results)
    rows, devices = CASE["rows"], CASE["devices"]
    print("transfers", mode, "ids", results["ids"].reshape(devices, -1, 128)[:, :rows, 0].tolist())
    if not (HERE / "expected.npz").exists():
        return 0
    expected = np.load(HERE / "expected.npz")
    logits = np.zeros((rows, CASE["vocab"]), np.float32)
    for part, (start, stop) in zip(np.split(results["logits"], devices), CASE["columns"], strict=True):
        panels = part.view(np.float32).reshape(-1, CASE["padded_rows"], 128)
        logits[:, start:stop] = panels.transpose(1, 0, 2).reshape(CASE["padded_rows"], -1)[:rows, : stop - start]
    active = inputs["active"][:rows] > 0
    difference = np.abs(logits - expected["logits"])[active]
    limit = float(expected["limit"])
    wrong = np.argwhere(~(difference <= limit))
    largest = np.where(np.isfinite(difference), difference, np.inf).max() if difference.size else 0.0
    print(f"largest difference of the logits {largest:.3g}, limit {limit:.3g}")
    if len(wrong):
        row, token = wrong[0]
        print(f"first: row {np.flatnonzero(active)[row]}, id {token}")
    return 1 if len(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
