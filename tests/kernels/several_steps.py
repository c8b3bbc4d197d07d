"""One call of several steps beside as many calls of one.

`python -m tests.kernels.several_steps MODEL DEVICES` prints `Both` as JSON, for a test in a process with one device.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedc.backends.pallas import compat
from schedc.backends.pallas.aot.environment import virtual_devices
from schedc.compiler.pipeline import Request, build
from schedc.lower.graph import StepShape
from schedc.run.decoder import Decoder
from schedc.target.target import parse_target
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import on_device
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import built_of, in_format, small_tiles
from tests.reference.recurrent_specs import KDA, block
from tests.reference.small_specs import small_spec

STEPS, CONTEXT = 4, 50
FIRST = (0, CONTEXT - 2, 11)
"""The second row's context is full after two steps; the third row is inactive."""
ACTIVE = (True, True, False)
UNTIED: dict[str, Any] = {"vocab": 330, "embedding": {"tied": False}}
SPECS = {
    "attention": small_spec(**UNTIED),
    "attention and states": small_spec(layers=[{"repeat": 2, "pattern": [block(KDA), block()]}], **UNTIED),
}


@dataclass(frozen=True)
class Both:
    """ids[steps][rows] of calls of one step and of the one call; what the first row was told to end at."""

    one_by_one: list[list[int]]
    in_one_call: list[list[int]]
    end: int
    same_logits: bool
    same_caches: bool


def both(model: str, devices: int) -> Both:
    spec = in_format(SPECS[model], "f32")
    shape = StepShape(len(FIRST), CONTEXT, logits=True, devices=devices)
    made = built_of(*build(Request(spec, parse_target("tpu7x:2x2x1", devices), shape, small_tiles("ring"))))
    weights = for_kernel(RandomWeights(spec, 5), spec)
    arrays = [pack_arrays([on_device(layout, n) for layout in made.schedule.layouts], weights) for n in range(devices)]
    settings = compat.interpret_params("eager", detect_races=False)

    def decoder() -> Decoder:
        return Decoder(made.module, spec, arrays.__getitem__, shape, made.schedule.plan.kv_tokens, settings)

    tokens, positions, active = [3, 4, 5], list(FIRST), list(ACTIVE)
    single, ids, logits, end = decoder(), [], [], -1
    for number in range(STEPS):
        answer = single.step(tokens, positions, active)
        ids.append([int(said) for said in answer["ids"]])
        logits.append(answer["logits"])
        end = ids[-1][0] if number == 2 else end
        for row in [row for row in range(len(FIRST)) if active[row]]:
            active[row] = positions[row] + 1 < CONTEXT and ids[-1][row] != end
            tokens[row], positions[row] = (ids[-1][row], positions[row] + 1) if active[row] else (0, 0)
    compat.reset_interpreter()

    several = decoder()
    answer = several.steps(STEPS, [3, 4, 5], FIRST, ACTIVE, {end})
    compat.reset_interpreter()
    alive = np.array(ids) >= 0
    return Both(
        ids,
        answer["ids"].tolist(),
        end,
        bool(np.array_equal(np.stack(logits)[alive], answer["logits"][alive])),
        all(np.array_equal(kept, several.state[name]) for name, kept in single.state.items()),
    )


def both_in_a_process(model: str, devices: int, seconds: float = 300) -> Both:
    command = [sys.executable, "-m", "tests.kernels.several_steps", model, str(devices)]
    environment = os.environ | virtual_devices(devices)
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    assert run.returncode == 0, run.stderr[-2000:]
    return Both(**json.loads(run.stdout.splitlines()[-1]))


if __name__ == "__main__":
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    print(json.dumps(dataclasses.asdict(both(sys.argv[1], int(sys.argv[2])))))
