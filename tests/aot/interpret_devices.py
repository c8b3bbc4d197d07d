"""Interpret a kernel on virtual devices: `python interpret_devices.py kernel.py devices inputs.npz answers.npz`.

The answers are, by mode, every output and whether it raced.
"""

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[2]}"
os.environ["NPROC"] = "64"  # With few threads the devices wait for each other for ever on jax 0.10.2.

import jax
import numpy as np

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.load import load_kernel


def main(kernel_file: str, devices: str, inputs_file: str, answers_file: str) -> None:
    kernel = load_kernel(Path(kernel_file))
    inputs = np.load(inputs_file)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: int(devices)]), ("device",))
    answers: dict[str, np.ndarray] = {}
    for mode in ("eager", "on_wait"):
        given = [inputs[name] for name in kernel.ARGUMENTS]
        outputs = kernel.decode_step(mesh, interpret=compat.interpret_params(mode))(*given)
        answers |= {f"{mode}.{n}": np.asarray(v) for n, v in zip(kernel.OUTPUTS, outputs, strict=True)}
        answers[f"{mode}.races"] = np.array(compat.races_found())
        compat.reset_interpreter()
    np.savez(answers_file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
