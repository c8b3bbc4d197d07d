"""Latent attention with keys and values of every head in its cache says what the `transformers` class says."""

from pathlib import Path

import pytest

from schedc.spec.latent_cache import with_latent_cache
from tests.conformance.families import Family, relative_difference
from tests.conformance.schedc_side import decode_steps, kernel_logits, opened
from tests.conformance.test_kernel import AGREES
from tests.kernels.built import in_format

pytestmark = [pytest.mark.kernel, pytest.mark.long]

STEPS = 6


@pytest.mark.parametrize("name", ["deepseek_v2", "deepseek_v3", "kimi_linear"])
def test_the_kernel_with_an_expanded_cache_agrees_with_transformers(name: str, tmp_path: Path) -> None:
    """The same tensors are packed: `kv_b` is not taken apart."""
    family = Family(name)
    spec, source = opened(family, tmp_path)
    found = kernel_logits(family, in_format(with_latent_cache(spec, "expanded"), "f32"), source, STEPS)
    expected = decode_steps(family.logits(), STEPS)
    difference = relative_difference(found, expected)
    print(f"{name}, expanded: {STEPS} steps, {difference:.1e} of {AGREES:.1e}")
    assert difference <= AGREES
