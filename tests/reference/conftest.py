import json
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from schedc.reference.reference import Reference
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.weights.fetch import fetch_weights
from schedc.weights.open import open_weights
from schedc.weights.source import WeightSource

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="session")
def smollm2() -> ModelSpec:
    return load_spec("smollm2-135m")


@pytest.fixture(scope="session")
def smollm2_weights(smollm2: ModelSpec) -> WeightSource:
    return open_weights(fetch_weights("smollm2-135m"), smollm2)


@pytest.fixture(scope="session")
def smollm2_reference(smollm2: ModelSpec, smollm2_weights: WeightSource) -> Reference:
    return Reference(smollm2, smollm2_weights)


@pytest.fixture(scope="session")
def smollm2_prompts() -> list[dict]:
    """Prompts with the tokens and logits that other implementations give (its README says which)."""
    return json.loads((Path(__file__).parent / "smollm2_reference.json").read_text())["prompts"]


@pytest.fixture
def quick_compiles() -> Iterator[None]:
    """Half the time of compiling; for small models, where running takes none."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
