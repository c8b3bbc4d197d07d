from pathlib import Path

import pytest

from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.weights.fetch import fetch_weights


@pytest.fixture(scope="session")
def smollm2() -> ModelSpec:
    return load_spec("smollm2-135m")


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    return fetch_weights("smollm2-135m")


@pytest.fixture
def spec() -> ModelSpec:
    """Two layers, 40 wide, 4 heads of 8 over 2 kv heads, biases for q and a vocabulary of 300."""
    block = {
        "mixer": {
            "kind": "gqa",
            "heads": 4,
            "kv_heads": 2,
            "head_dim": 8,
            "rope": {"theta": 100.0, "pairs": "adjacent", "rotary_dim": 4},
            "bias": {"q": True},
        },
        "feed_forward": {"kind": "dense", "width": 200, "gated": True, "activation": "silu"},
        "norm": {"kind": "rms", "eps": 1e-5},
    }
    return ModelSpec.model_validate(
        {
            "name": "small",
            "hidden": 40,
            "vocab": 300,
            "max_position": 64,
            "embedding": {"tied": True},
            "layers": [{"repeat": 2, "pattern": [block]}],
            "final_norm": block["norm"],
        }
    )
