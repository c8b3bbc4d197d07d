"""The JAX reference of Kimi K3 against a step in float64 numpy, written from the model's definition alone."""

import numpy as np
import pytest

from schedc.reference.reference import Reference
from schedc.weights.random_weights import RandomWeights
from tests.models.kimi_k3_mini import EXACT, judge, mini

TOKENS = 64
RELATIVE = 1e-4


def far(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, by the size of the largest number."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.usefixtures("quick_compiles")
def test_every_layer_agrees_with_the_numpy_step_over_64_tokens() -> None:
    spec = mini(**EXACT)
    source = RandomWeights(spec, seed=1)
    tokens = np.random.default_rng(0).integers(0, spec.vocab, TOKENS)
    model, reference = judge(spec, source), Reference(spec, source)
    steps = [model.step(int(token)) for token in tokens]

    logits, _ = reference.prefill(tokens)
    outputs = reference.layer_outputs(tokens)

    for layer in range(spec.num_layers):
        expected = np.stack([step[1][layer] for step in steps])
        assert far(outputs[layer], expected) < RELATIVE, f"layer {layer}"
        assert np.abs(expected).mean() > 0.1
    assert far(logits, np.stack([step[0] for step in steps])) < RELATIVE
