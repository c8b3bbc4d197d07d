"""The generated kernel of the scaled-down Kimi K3, token by token from the first on, against the float64 numpy step.

Its transfers are interpreted in both modes, under the race detector; its experts stay in mxfp4, all else is f32.
"""

import sys
from functools import cache

import numpy as np
import pytest

from schedc.compiler.interpret import interpret
from schedc.compiler.pipeline import Request, build
from schedc.compiler.shrink import Shrunk
from schedc.lower.collectives.communication import FUSED
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from schedc.weights.random_weights import RandomWeights
from tests.models.decode_steps import Answer, Question, decoded
from tests.models.kimi_k3_mini import EXACT, judge, mini

pytestmark = pytest.mark.kernel

SEED = 1
RELATIVE = 1e-4
LONGEST = 64
HOURS = 4
"""So long, as on a machine that others use hours of wall time may be minutes of its own."""

THIRTY_TWO = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="on jax 0.10.2 they deadlock on two cores without NPROC=64"
)


def tokens(steps: int) -> list[list[int | None]]:
    """Two sequences; the second one begins a step after the first."""
    random = np.random.default_rng(0).integers(0, mini().vocab, (LONGEST, 2)).tolist()
    return [[random[0][0], None], *random[1:steps]]


@cache
def judged(row: int) -> np.ndarray:
    """f32[tokens of the row, vocab], by the numpy step."""
    spec = mini(**EXACT)
    model = judge(spec, RandomWeights(spec, SEED))
    return np.stack([model.step(step[row])[0] for step in tokens(LONGEST) if step[row] is not None])


@cache
def answered(devices: int, mode: str, steps: int, latent: str | None) -> Answer:
    target = "tpu7x" if devices == 1 else "tpu7x:2x2x1" if devices <= 4 else "tpu7x:2x2x4"
    formats = {"quantization": EXACT, "kv": {"dtype": "f32"}}
    sites = {} if latent is None else {"latent": latent}
    question = Question("kimi-k3-mini", formats, target, devices, mode, "ring", SEED, tokens(steps), sites)
    return decoded(question, seconds=HOURS * 3600)


def agrees(answer: Answer) -> None:
    """Logits with the judge's, and the id of every device with its most likely token."""
    assert not answer.raced
    assert (answer.ids[0, :, 1] == -1).all()
    for row, first in enumerate((0, 1)):
        logits, ids = answer.logits[first:, row], answer.ids[first:, :, row]
        expected = judged(row)[: len(logits)]
        largest = np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(logits - expected) / largest).max() < RELATIVE
        assert (ids == expected.argmax(axis=1)[:, None]).all()


@pytest.mark.parametrize(
    ("devices", "mode", "steps", "latent"),
    [
        pytest.param(2, "on_wait", 2, FUSED, id="2 devices"),
        pytest.param(2, "on_wait", 2, None, id="2 devices, latents apart", marks=pytest.mark.long),
        pytest.param(1, "eager", 4, None, id="1 device, eager", marks=pytest.mark.long),
        pytest.param(4, "eager", 4, FUSED, id="4 devices, eager", marks=pytest.mark.long),
        pytest.param(1, "on_wait", LONGEST, None, id="1 device, 64 steps", marks=pytest.mark.long),
        pytest.param(2, "eager", LONGEST, None, id="2 devices, eager, 64 steps", marks=pytest.mark.long),
        pytest.param(4, "on_wait", LONGEST, FUSED, id="4 devices, 64 steps", marks=pytest.mark.long),
        pytest.param(32, "on_wait", 2, FUSED, id="32 devices", marks=[pytest.mark.long, THIRTY_TWO]),
        pytest.param(32, "eager", 2, None, id="32 devices, eager", marks=[pytest.mark.long, THIRTY_TWO]),
    ],
)
def test_every_step_says_what_the_numpy_step_says(devices: int, mode: str, steps: int, latent: str | None) -> None:
    agrees(answered(devices, mode, steps, latent))


@pytest.mark.long
def test_states_and_caches_are_those_of_the_reference() -> None:
    """From random states on; a row at position 0 starts anew, and what an inactive row keeps does not change."""
    spec, shape = mini(**EXACT), StepShape(3, 40, logits=True)
    made, program = build(Request(spec, parse_target("tpu7x"), shape, "ring"))
    run = interpret(Shrunk(spec, shape, made, ()), program, "on_wait", 1800)
    assert run.problems == ()
    assert run.steps >= 3
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3
