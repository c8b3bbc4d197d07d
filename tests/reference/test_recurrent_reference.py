"""Mixers with a state and block attention residuals in the reference, against numpy that takes one head at a time."""

import numpy as np
import pytest
from recurrent_specs import FEATURES

from schedc.reference.reference import Reference, join_rows
from schedc.spec.model import ModelSpec
from schedc.weights.kept import Recurrent
from schedc.weights.random_weights import RandomWeights
from schedc.weights.source import check_weights
from tests.reference.numpy_decoder import NumpyDecoder

TOKENS = [3, 17, 42, 8, 8, 31, 0, 49, 12, 5, 33, 21, 20, 6, 6, 40, 2, 11, 19]
WITH_STATE = ["kda", "kda, softplus", "gated delta beside attention", "blocks of two"]

ATOL = 3e-4
"""Of logits up to 20: sums of f32 in another order, enlarged where a head's q or k is short before it is normalised."""

pytestmark = pytest.mark.usefixtures("quick_compiles")


@pytest.mark.parametrize("spec", FEATURES.values(), ids=FEATURES)
def test_prefill_agrees_with_the_numpy_decoder(spec: ModelSpec) -> None:
    source = RandomWeights(spec, seed=1)
    check_weights(source, spec, "random weights")
    logits, _ = Reference(spec, source).prefill(TOKENS)
    np.testing.assert_allclose(logits, NumpyDecoder(spec, source).logits(TOKENS), atol=ATOL)


@pytest.mark.parametrize("name", WITH_STATE)
def test_padding_of_a_prefill_does_not_advance_a_state(name: str) -> None:
    spec = FEATURES[name]
    reference = Reference(spec, RandomWeights(spec, seed=1))
    expected, whole = reference.prefill(TOKENS)
    _, cache = reference.prefill(TOKENS[:5])
    for position in range(5, len(TOKENS)):
        logits, cache = reference.decode([TOKENS[position]], [position], join_rows([cache], capacity=20))
        np.testing.assert_allclose(logits[0], expected[position], atol=ATOL)
    for kept, same in zip(cache.layers(spec), whole.layers(spec), strict=True):
        if isinstance(same, Recurrent):
            assert isinstance(kept, Recurrent)
            np.testing.assert_allclose(kept.state, same.state, atol=ATOL)
            np.testing.assert_allclose(kept.windows, same.windows, atol=ATOL)


@pytest.mark.parametrize("name", WITH_STATE)
def test_rows_are_independent_and_one_at_position_0_starts_anew(name: str) -> None:
    spec = FEATURES[name]
    reference = Reference(spec, RandomWeights(spec, seed=2))
    prompts = [TOKENS[:1], TOKENS[:4], TOKENS[:9]]
    together = join_rows([reference.prefill(prompt)[1] for prompt in prompts], capacity=20)

    logits, _ = reference.decode([7, 8, 9], [1, 0, 9], together)

    for row, tokens in enumerate(([*prompts[0], 7], [8], [*prompts[2], 9])):
        expected, _ = reference.prefill(tokens)
        np.testing.assert_allclose(logits[row], expected[-1], atol=ATOL)


def test_what_is_kept_of_a_sequence_is_its_tokens_or_its_state() -> None:
    spec = FEATURES["gated delta beside attention"]
    reference = Reference(spec, RandomWeights(spec, seed=2))
    caches = [reference.prefill(TOKENS[:length])[1] for length in (3, 8)]

    kept = join_rows(caches, capacity=30).sequence(spec, 1, 8)

    assert [part.shape for part in kept[0]] == [(6, 5, 8), (2, 2 * 2 * 8 + 6 * 5)]
    assert [part.shape for part in kept[2]] == [(8, 2, 8)] * 2
    np.testing.assert_array_equal(kept[3][0], caches[1].layers(spec)[3][0][0])


@pytest.mark.parametrize("name", ["kda", "kda, softplus", "gated delta"])
def test_random_decays_keep_some_heads_for_long_and_others_hardly(name: str) -> None:
    spec = FEATURES[name]
    reference = Reference(spec, RandomWeights(spec, seed=3))
    tokens = np.random.default_rng(0).integers(0, spec.vocab, 64)
    states = np.stack([kept[0] for kept in reference.prefill(tokens)[1].layers(spec)])
    assert np.isfinite(states).all()
    assert 0.02 < np.abs(states).mean() < 2.0
    sizes = np.sqrt((states**2).mean(-2)).reshape(-1)
    assert sizes.max() > 3 * sizes.min()
