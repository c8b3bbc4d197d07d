"""Where the caches of latent attention lie, and what is said when the expanded one of Kimi K3 does not fit."""

import pytest

from schedc.compiler.pipeline import Request, build
from schedc.errors import CheckFailed
from schedc.lower.graph import StepShape
from schedc.placement.rules import PlacementRules
from schedc.placement.table import held
from schedc.spec.latent_cache import with_latent_cache
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

EXPANDED = with_latent_cache(load_spec("kimi-k3"), "expanded")


def test_heads_keys_and_values_are_divided_and_the_latent_is_not() -> None:
    caches = {
        (found.what, found.copies)
        for spec in (load_spec("kimi-k3"), EXPANDED)
        for found in held(spec, 32, PlacementRules())
        if found.family == "cache" and "states" not in found.what
    }
    assert caches == {("all 1 latent", 32), ("3 of 96 heads' keys and values", 1)}


def test_the_placement_of_the_published_kernel_is_refused_at_long_contexts() -> None:
    """54 GiB of keys and values for eight sequences of 131,072 tokens, as its authors found."""
    target = parse_target("tpu7x:2x2x4", 32)
    with pytest.raises(CheckFailed) as refused:
        build(Request(EXPANDED, target, StepShape(8, 131_072, devices=32)))
    said = str(refused.value)
    assert "kimi-k3 does not fit the HBM of tpu7x:2x2x4 on 32 of its devices" in said
    assert "caches: 58,104,152,064 bytes" in said and "would fit: --latent-cache absorbed" in said
