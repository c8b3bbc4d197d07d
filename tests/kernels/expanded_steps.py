"""Logits of the same tokens by two kernels: latent attention with an absorbed cache, and with an expanded one.

`python -m tests.kernels.expanded_steps DEVICES` prints how far apart they are, for a test in a process with one device.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.environment import virtual_devices
from schedc.compiler.pipeline import Request, build
from schedc.lower.graph import StepShape
from schedc.run.decoder import Decoder
from schedc.spec.latent_cache import with_latent_cache
from schedc.spec.mixers.mla import LatentCache
from schedc.target.target import parse_target
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import on_device
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import built_of, in_format, small_tiles
from tests.reference.small_specs import latent_spec

SPEC = in_format(latent_spec({"heads": 5, "output_gate": True}), "f32")
"""Heads that do not divide over two devices."""
TOKENS = np.array([[3, 44, 7, 19], [5, 5, 21, 8], [30, 2, 11, 49]])
"""[step][row]: every step is told what came before, whatever it said."""


def logits(cache: LatentCache, devices: int) -> np.ndarray:
    """f32[steps, rows, vocab] from the beginning of every row."""
    spec, rows = with_latent_cache(SPEC, cache), TOKENS.shape[1]
    shape = StepShape(rows, 32, logits=True, devices=devices)
    made = built_of(*build(Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))))
    weights = for_kernel(RandomWeights(spec, 5), spec)
    arrays = [pack_arrays([on_device(layout, n) for layout in made.schedule.layouts], weights) for n in range(devices)]
    settings = compat.interpret_params("on_wait", detect_races=False)
    decoder = Decoder(made.module, spec, arrays.__getitem__, shape, made.schedule.plan.kv_tokens, settings)
    found = [decoder.step(tokens.tolist(), [at] * rows)["logits"] for at, tokens in enumerate(TOKENS)]
    compat.reset_interpreter()
    return np.stack(found)


def apart(devices: int) -> tuple[float, float]:
    """The largest difference between the two, and between the first step and the others, over the largest logit."""
    absorbed, expanded = logits("absorbed", devices), logits("expanded", devices)
    differences = np.abs(absorbed - expanded).max(), np.abs(absorbed[1:] - absorbed[:-1]).max()
    of_caches, of_steps = (float(difference / np.abs(absorbed).max()) for difference in differences)
    return of_caches, of_steps


def apart_in_a_process(devices: int, seconds: float = 400) -> tuple[float, float]:
    command = [sys.executable, "-m", "tests.kernels.expanded_steps", str(devices)]
    environment = os.environ | virtual_devices(devices)
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    assert run.returncode == 0, run.stderr[-2000:]
    of_caches, of_steps = map(float, run.stdout.split())
    return of_caches, of_steps


if __name__ == "__main__":
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    print(*apart(int(sys.argv[1])))
