import numpy as np
import pytest
from small_specs import FEATURES, LATENT, small_spec

from schedc.reference.reference import Reference, join_rows
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel, kernel_cache
from schedc.weights.random_weights import RandomWeights
from tests.reference.numpy_decoder import KERNEL, NumpyDecoder

TOKENS = [3, 17, 42, 8, 8, 31, 0, 49, 12]


@pytest.mark.usefixtures("quick_compiles")
@pytest.mark.parametrize("spec", (FEATURES | LATENT).values(), ids=FEATURES | LATENT)
def test_prefill_agrees_with_the_numpy_decoder(spec: ModelSpec) -> None:
    source = RandomWeights(spec, seed=1)
    logits, _ = Reference(spec, source).prefill(TOKENS)
    np.testing.assert_allclose(logits, NumpyDecoder(spec, source).logits(TOKENS), atol=5e-5)


@pytest.mark.usefixtures("quick_compiles")
@pytest.mark.parametrize("name", ["two runs", "window", "partial adjacent", "latent attention"])
def test_decode_goes_on_where_prefill_ends(name: str) -> None:
    spec = (FEATURES | LATENT)[name]
    reference = Reference(spec, RandomWeights(spec, seed=1))
    expected, _ = reference.prefill(TOKENS)
    _, cache = reference.prefill(TOKENS[:5])
    for position in range(5, len(TOKENS)):
        logits, cache = reference.decode([TOKENS[position]], [position], cache)
        np.testing.assert_allclose(logits[0], expected[position], atol=5e-5)


def test_the_numpy_decoder_gives_the_same_token_by_token() -> None:
    spec = FEATURES["window"]
    decoder = NumpyDecoder(spec, RandomWeights(spec, seed=1))
    kept: dict = {}
    one_by_one = np.concatenate([decoder.extend([token], kept) for token in TOKENS])
    np.testing.assert_allclose(one_by_one, decoder.logits(TOKENS), atol=5e-5)


@pytest.mark.usefixtures("quick_compiles")
def test_rows_at_different_positions_are_independent() -> None:
    spec = FEATURES["two runs"]
    reference = Reference(spec, RandomWeights(spec, seed=2))
    prompts = [TOKENS[:1], TOKENS[:4], TOKENS]
    alone = [reference.prefill(prompt) for prompt in prompts]
    together = join_rows([cache for _, cache in alone], capacity=20)

    logits, _ = reference.decode([7, 8, 9], [len(prompt) for prompt in prompts], together)

    for row, prompt in enumerate(prompts):
        expected, _ = reference.prefill([*prompt, 7 + row])
        np.testing.assert_allclose(logits[row], expected[-1], atol=5e-5)


def test_a_position_beyond_the_cache_is_refused() -> None:
    spec = small_spec()
    reference = Reference(spec, RandomWeights(spec, seed=2))
    with pytest.raises(ValueError, match="position 16 is beyond the cache's 16 tokens"):
        reference.decode([1], [16], reference.empty_cache(1, 16))


@pytest.mark.usefixtures("quick_compiles")
@pytest.mark.parametrize("name", ["adjacent pairs", "partial adjacent", "latent attention", "latent, queries at once"])
def test_kernel_order_turns_adjacent_pairs_into_halves(name: str) -> None:
    spec = (FEATURES | LATENT)[name]
    source = RandomWeights(spec, seed=3)
    halves = ModelSpec.model_validate_json(spec.model_dump_json().replace('"adjacent"', '"half"'))

    logits, cache = Reference(spec, source).prefill(TOKENS)
    in_halves, halves_cache = Reference(halves, for_kernel(source, spec)).prefill(TOKENS)

    np.testing.assert_allclose(in_halves, logits, atol=5e-5)
    mixer = spec.layers[0].pattern[0].mixer
    for side, expected in zip(halves_cache.layers(spec)[1], kernel_cache(cache.layers(spec)[1], mixer), strict=True):
        np.testing.assert_allclose(side, expected, atol=5e-5)


def test_smollm2_says_what_other_implementations_say(smollm2_reference, smollm2_prompts) -> None:
    for prompt in smollm2_prompts:
        logits, cache = smollm2_reference.prefill(prompt["ids_hf"], capacity=64)
        for token, expected in prompt["numpy_first_top5"]:
            assert logits[-1, token] == pytest.approx(expected, abs=2e-3)
        assert np.argsort(-logits[-1])[:5].tolist() == [token for token, _ in prompt["numpy_first_top5"]]

        tokens = [int(logits[-1].argmax())]
        for position in range(len(prompt["ids_hf"]), len(prompt["ids_hf"]) + 15):
            logits, cache = smollm2_reference.decode([tokens[-1]], [position], cache)
            tokens.append(int(logits[0].argmax()))
        assert tokens == prompt["greedy_hf"]


@pytest.mark.slow
def test_smollm2_keeps_its_tokens_with_the_rounding_of_a_bf16_kernel(
    smollm2, smollm2_weights, smollm2_reference, smollm2_prompts
) -> None:
    rounded = NumpyDecoder(smollm2, smollm2_weights, KERNEL)
    for prompt in smollm2_prompts:
        tokens = prompt["ids_hf"] + prompt["greedy_hf"][:-1]
        exact, _ = smollm2_reference.prefill(tokens)
        logits = rounded.logits(tokens)
        difference = np.abs(logits - exact)
        print(f"largest {difference.max():.3f}, mean {difference.mean():.4f}")
        assert 0.05 < difference.max() < 0.8
        assert logits[-16:].argmax(axis=1).tolist() == prompt["greedy_hf"]
