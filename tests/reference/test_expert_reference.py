"""Experts in the reference, against numpy that takes one token and one expert at a time."""

import numpy as np
import pytest
from moe_specs import FEATURES

from schedc.reference.reference import Reference
from schedc.spec.model import ModelSpec
from schedc.weights.random_weights import RandomWeights
from schedc.weights.source import check_weights
from tests.reference.numpy_decoder import NumpyDecoder

TOKENS = [3, 17, 42, 8, 8, 31, 0, 49, 12]


@pytest.mark.usefixtures("quick_compiles")
@pytest.mark.parametrize("spec", FEATURES.values(), ids=FEATURES)
def test_prefill_agrees_with_the_numpy_decoder(spec: ModelSpec) -> None:
    source = RandomWeights(spec, seed=1)
    check_weights(source, spec, "random weights")
    logits, _ = Reference(spec, source).prefill(TOKENS)
    np.testing.assert_allclose(logits, NumpyDecoder(spec, source).logits(TOKENS), atol=3e-5)
