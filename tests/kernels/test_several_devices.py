"""A model over several devices says what the reference says: logits, ids, and what is left in the caches."""

import sys

import pytest

from tests.eight_devices import EIGHT_DEVICES
from tests.kernels.built import in_format
from tests.kernels.devices import run_on
from tests.reference.small_specs import LAYER, small_spec

pytestmark = pytest.mark.kernel

BIASED = {"q": True, "k": True, "v": True, "o": True}

UNEVEN = small_spec(
    {"heads": 6, "kv_heads": 3, "head_dim": 16, "bias": BIASED, "qk_norm": LAYER},
    {"width": 300, "bias": {"up": True, "gate": True, "down": True}},
    {"norm": LAYER, "placement": "sandwich"},
    hidden=160,
    vocab=700,
    embedding={"tied": False},
)
"""Three kv heads, three panels of width, six of vocabulary: on 2, 4 and 8 devices some hold padding, some nothing."""

COPIED = small_spec({"heads": 8, "kv_heads": 1, "head_dim": 64, "window": 20}, {"width": 500}, hidden=96, vocab=300)
"""One kv head, which all devices keep."""


@pytest.mark.parametrize(
    ("spec", "devices", "mode"),
    [
        pytest.param(UNEVEN, 2, "on_wait", id="uneven on 2"),
        pytest.param(COPIED, 4, "eager", id="copied on 4"),
        pytest.param(UNEVEN, 2, "eager", id="uneven on 2, eager", marks=pytest.mark.slow),
        pytest.param(UNEVEN, 4, "eager", id="uneven on 4, eager", marks=pytest.mark.slow),
        pytest.param(COPIED, 4, "on_wait", id="copied on 4, on_wait", marks=pytest.mark.slow),
        pytest.param(UNEVEN, 8, "on_wait", id="uneven on 8", marks=EIGHT_DEVICES),
        pytest.param(COPIED, 8, "eager", id="copied on 8", marks=EIGHT_DEVICES),
    ],
)
def test_all_devices_together_agree_with_the_reference_without_races(spec, devices: int, mode: str) -> None:
    run = run_on(in_format(spec, "f32"), devices, mode)
    assert run.problems == ()
    assert run.steps > 3
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3


@pytest.mark.long
@pytest.mark.skipif(sys.version_info < (3, 12), reason="on jax 0.10.2 they deadlock on two cores without NPROC=64")
@pytest.mark.parametrize("spec", [UNEVEN, COPIED], ids=["uneven", "copied"])
def test_thirty_two_devices_of_four_hosts_agree_with_the_reference(spec) -> None:
    run = run_on(in_format(spec, "f32"), 32, "on_wait", rows=1, seconds=1800, target="tpu7x:2x2x4")
    assert run.problems == ()
