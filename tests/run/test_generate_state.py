"""Tokens in, tokens out of models whose layers keep a state: prompts by the reference, what follows by the kernel."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.lower.graph import StepShape
from schedc.reference.reference import Reference
from schedc.run.decoder import Decoder
from schedc.run.generate import generate, prefill
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import build_kernel, in_format
from tests.weights.kimi_checkpoint import kimi_spec
from tests.weights.test_state_checkpoints import qwen_spec

PROMPTS = [[7, 3, 9, 2, 5, 1], [4]]
"""Of the second nothing is prefilled: its state begins at nought, whatever the memory holds."""

pytestmark = [pytest.mark.kernel, pytest.mark.slow]


def greedy(reference: Reference, prompt: list[int], count: int) -> list[int]:
    """The whole sequence anew for every token."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(np.asarray(reference.prefill(ids)[0])[-1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("spec", [kimi_spec(), qwen_spec()], ids=lambda spec: spec.name)
def test_generated_tokens_are_those_of_the_reference(spec: ModelSpec) -> None:
    spec = in_format(spec, "f32")
    source, shape = RandomWeights(spec, 0), StepShape(rows=3, context=32)
    built = build_kernel(spec, shape)
    arrays = pack_arrays(built.schedule.layouts, for_kernel(source, spec))
    settings = compat.interpret_params("on_wait", detect_races=False)
    decoder = Decoder(built.module, spec, lambda device: arrays, shape, built.schedule.plan.kv_tokens, settings)
    reference = Reference(spec, source)
    prefill(decoder, reference, PROMPTS)
    found = [[int(token) for token in made if token is not None] for made in generate(decoder, PROMPTS, 4)]
    assert [list(tokens) for tokens in zip(*found, strict=True)] == [greedy(reference, p, 4) for p in PROMPTS]
