"""A cache in fp8: the newest token is rounded into its byte of the cache, keys and values are multiplied as bf16."""

import pytest

from schedc.compiler.trial import problems
from schedc.lower.graph import StepShape
from schedc.spec.model import ModelSpec
from tests.kernels.built import Mode, build_kernel, step, trial
from tests.reference.small_specs import latent_spec, small_spec

pytestmark = pytest.mark.kernel

SHAPE = StepShape(rows=2, context=70, logits=True)
SPECS = {"grouped-query": small_spec(max_position=128), "latent": latent_spec(max_position=128)}


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("grouped-query", "eager"),
        pytest.param("grouped-query", "on_wait", marks=pytest.mark.slow),
        pytest.param("latent", "eager", marks=pytest.mark.slow),
        pytest.param("latent", "on_wait", marks=pytest.mark.slow),
    ],
)
def test_a_kernel_with_an_fp8_cache_agrees_with_the_reference(name: str, mode: Mode) -> None:
    changed = {"quantization": {"weights": "bf16"}, "kv": {"dtype": "fp8"}}
    spec = ModelSpec.model_validate(SPECS[name].model_dump(mode="json") | changed)
    built = build_kernel(spec, SHAPE)
    beside = trial(built, spec, SHAPE, mode)
    for positions in ((0, 66), (1, 67), (33, 30)):
        outcome, raced = step(beside, positions)
        assert problems(outcome, spec) == []
        assert not raced
