"""Verified guesses give the tokens of plain decoding, however many of them are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schedc.backends.pallas import compat
from schedc.lower.graph import StepShape
from schedc.reference.reference import Reference
from schedc.run.decoder import Decoder
from schedc.run.generate import prefill
from schedc.run.speculate import generate_drafted
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import build_kernel, in_format, small_tiles
from tests.reference.recurrent_specs import FEATURES
from tests.reference.small_specs import LATENT, small_spec

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SHAPE = StepShape(8, 60, rows_are="tokens")
PROMPT = [3, 1, 4, 1, 5]
NEW = 40


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(small_spec(mixer={"kv_heads": 1}), id="attention"),
        pytest.param(LATENT["latent, output gate"], id="latents"),
        pytest.param(FEATURES["gated delta beside attention"], id="states beside attention"),
        pytest.param(FEATURES["kda"], id="delta attention"),
    ],
)
def test_zero_to_seven_right_guesses_give_the_tokens_of_plain_decoding(spec: ModelSpec) -> None:
    spec = in_format(spec, "f32")
    source, built = RandomWeights(spec, 0), build_kernel(spec, SHAPE, small_tiles("ring"))
    reference = Reference(spec, source)
    plain = greedy(reference, PROMPT, NEW)
    arrays = pack_arrays(built.schedule.layouts, for_kernel(source, spec))
    tokens = built.schedule.plan.kv_tokens
    compat.reset_interpreter()
    settings = compat.interpret_params("eager", detect_races=False)
    decoder = Decoder(built.module, spec, lambda device: arrays, SHAPE, tokens, settings)
    prefill(decoder, reference, [PROMPT])
    right = iter((0, 3, 7, 1, 6, 2, 5, 4, 7, 7))

    def draft(so_far: Sequence[int], most: int) -> list[int]:
        """As many right guesses as it is the turn of, then wrong ones."""
        known, place = next(right), len(so_far) - len(PROMPT)
        guesses = plain[place : place + most]
        return [token if n < known else (token + 1) % spec.vocab for n, token in enumerate(guesses)]

    steps = list(generate_drafted(decoder, PROMPT, NEW, draft=draft))

    assert [len(new) for new in steps] == [1, 4, 8, 2, 7, 3, 6, 5, 4]
    assert [token for new in steps for token in new] == plain

    again = decoder.step([PROMPT[0]] * 8, [0], accepted=0)["ids"]
    once_more = decoder.step([PROMPT[0]] * 8, [0], accepted=0)["ids"]  # None of eight is accepted.
    np.testing.assert_array_equal(again, once_more)


def greedy(reference: Reference, prompt: Sequence[int], count: int) -> list[int]:
    logits, cache = reference.prefill(prompt, len(prompt) + count)
    made = [int(logits[-1].argmax())]
    while len(made) < count:
        of_row, cache = reference.decode([made[-1]], [len(prompt) + len(made) - 1], cache)
        made.append(int(of_row[0].argmax()))
    return made
