import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def quick_compiles() -> Iterator[None]:
    """Half the time of compiling; for small models, where running takes none."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
