"""The reference with an expanded cache of latent attention says what it says with an absorbed one."""

import numpy as np
import pytest

from schedc.errors import UserError
from schedc.reference.reference import Reference
from schedc.spec.latent_cache import with_latent_cache
from schedc.spec.model import ModelSpec
from schedc.weights.random_weights import RandomWeights
from tests.kernels.built import in_format
from tests.reference.small_specs import LATENT, small_spec

PROMPT, STEPS = [3, 14, 1, 5, 9, 2, 6], [5, 3, 5]


@pytest.mark.parametrize("name", ["latent, odd sizes", "latent, no rope"])
def test_logits_are_those_of_the_absorbed_cache(name: str) -> None:
    spec = in_format(LATENT[name], "f32")
    absorbed, expanded = (logits(with_latent_cache(spec, cache)) for cache in ("absorbed", "expanded"))
    assert np.abs(absorbed - expanded).max() <= 1e-5 * np.abs(absorbed).max()
    assert np.abs(absorbed[1:] - absorbed[:-1]).max() > 0.1


def logits(spec: ModelSpec) -> np.ndarray:
    """f32[tokens, vocab] of a prompt and of decode steps behind it."""
    reference = Reference(spec, RandomWeights(spec, 3))
    found, cache = reference.prefill(PROMPT, 16)
    rows = list(found)
    for at, token in enumerate(STEPS, len(PROMPT)):
        said, cache = reference.decode([token], [at], cache)
        rows.append(said[0])
    return np.stack(rows)


def test_a_key_of_the_expanded_cache_ends_in_the_shared_key() -> None:
    spec = in_format(LATENT["latent, odd sizes"], "f32")
    mixer = spec.layers[0].pattern[0].mixer
    caches = {}
    for kind in ("absorbed", "expanded"):
        other = with_latent_cache(spec, kind)
        caches[kind] = Reference(other, RandomWeights(other, 3)).prefill(PROMPT)[1].layers(other)[0]
    keys, values = caches["expanded"]
    assert keys.shape[2:] == (5, 13) and values.shape[2:] == (5, 11)
    shared = caches["absorbed"][1]
    assert np.array_equal(keys[..., mixer.nope_dim :], np.broadcast_to(shared, (*keys.shape[:3], mixer.rope_dim)))


def test_a_model_without_latent_attention_has_no_latent_cache() -> None:
    with pytest.raises(UserError, match="small has no latent attention, only gqa; leave the latent cache out"):
        with_latent_cache(small_spec(), "expanded")
