"""Families with windows or chunks whose caches are rings say what the `transformers` class says."""

from pathlib import Path

import pytest

from schedc.spec.window_cache import with_window_cache
from tests.conformance.families import Family, relative_difference
from tests.conformance.schedc_side import decode_steps, kernel_logits, opened
from tests.conformance.test_kernel import AGREES
from tests.kernels.built import in_format, small_tiles

pytestmark = [pytest.mark.kernel, pytest.mark.long]


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "gpt_oss", "exaone4", "llama4", "mistral"])
def test_the_kernel_with_rings_agrees_with_transformers(name: str, tmp_path: Path) -> None:
    """From prompts on that fill a ring in part, once, and more than once; all decode steps."""
    family = Family(name)
    spec, source = opened(family, tmp_path)
    spec = with_window_cache(in_format(spec, "f32"), "ring")
    found = kernel_logits(family, spec, source, policy=small_tiles("ring"))
    expected = decode_steps(family.logits())
    difference = relative_difference(found, expected)
    print(f"{name}, rings: {len(found)} steps, {difference:.1e} of {AGREES:.1e}")
    assert difference <= AGREES
