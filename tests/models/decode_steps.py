"""Decode with a generated kernel on virtual devices, in a process that has as many, and watch for races.

`python -m tests.models.decode_steps question.json answer.npz`; `decoded` starts it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from schedc.backends.pallas.aot.environment import compiler_environment, virtual_devices
from schedc.compiler.pipeline import Request, build, limits_of
from schedc.ir.verify import verify
from schedc.lower.collectives.communication import Communication
from schedc.lower.collectives.group import topology_of
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from schedc.weights.random_weights import RandomWeights

BEGAN = time.monotonic()


@dataclass(frozen=True)
class Question:
    """The packaged `model` in other formats, on `devices` of `target`; weights are random, of `seed`.

    `tokens` [steps][rows]: what every row is given from its position 0 on; None: the row is inactive in that step.
    """

    model: str
    formats: dict[str, dict[str, str]]
    target: str
    devices: int
    mode: str
    policy: str
    seed: int
    tokens: list[list[int | None]]
    collectives: dict[str, str] = field(default_factory=dict)
    """By site, where they are not the default."""


@dataclass(frozen=True)
class Answer:
    logits: np.ndarray
    """f32[steps, rows, vocab]"""
    ids: np.ndarray
    """int32[steps, devices, rows]"""
    raced: bool


def decoded(question: Question, seconds: float) -> Answer:
    """Ends after `seconds` at the latest."""
    with tempfile.TemporaryDirectory() as name:
        asked, answered = Path(name) / "question.json", Path(name) / "answer.npz"
        asked.write_text(json.dumps(asdict(question)))
        command = [sys.executable, "-m", "tests.models.decode_steps", str(asked), str(answered)]
        environment = os.environ | compiler_environment(None) | virtual_devices(question.devices)
        subprocess.run(command, env=environment, timeout=seconds, check=True)
        found = np.load(answered)
        return Answer(found["logits"], found["ids"], bool(found["raced"]))


def say(what: str) -> None:
    """On stderr (`pytest -s` shows it), with the seconds that have passed."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{time.monotonic() - BEGAN:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} of CPU: {what}", file=sys.stderr)


def main(asked: str, answered: str) -> None:
    import jax

    from schedc.backends.pallas import compat
    from schedc.run.decoder import Decoder
    from schedc.spec.model import ModelSpec
    from schedc.weights.head_order import for_kernel
    from schedc.weights.layout import on_device
    from schedc.weights.pack import pack_arrays
    from tests.kernels.built import built_of

    question = Question(**json.loads(Path(asked).read_text()))
    jax.config.update("jax_disable_most_optimizations", True)  # Compiling takes longer than running.
    spec = ModelSpec.model_validate(load_spec(question.model).model_dump(mode="json") | question.formats)
    steps, rows = len(question.tokens), len(question.tokens[0])
    target = parse_target(question.target, question.devices)
    talk = Communication(topology_of(target)).at_sites(question.collectives, {})
    shape = StepShape(rows, steps, logits=True, devices=question.devices, communication=talk)
    made, program = build(Request(spec, target, shape, question.policy))
    verdict = verify(program, limits_of(target))
    assert verdict.proven, str(verdict)
    source = for_kernel(RandomWeights(spec, question.seed), spec)

    packed = [pack_arrays([on_device(layout, d) for layout in made.layouts], source) for d in range(question.devices)]
    settings = compat.interpret_params(question.mode)
    decoder = Decoder(built_of(made, program).module, spec, packed.__getitem__, shape, made.plan.kv_tokens, settings)
    positions, logits, ids, raced = [0] * rows, [], [], False
    say("the kernel is built and the weights are packed")
    for number, tokens in enumerate(question.tokens):
        active = [token is not None for token in tokens]
        answer = decoder.step([token or 0 for token in tokens], positions, active)
        raced |= compat.races_found()
        compat.reset_interpreter()
        positions = [position + is_active for position, is_active in zip(positions, active, strict=True)]
        logits.append(answer["logits"])
        ids.append(answer["device_ids"])
        say(f"step {number}")
    np.savez(answered, logits=np.stack(logits), ids=np.stack(ids), raced=np.array(raced))


if __name__ == "__main__":
    main(*sys.argv[1:])
