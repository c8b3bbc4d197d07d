"""Two real families on 1 to 32 devices, in both DMA modes, under the race detector, against the reference on one.

The configs are those of the conformance tests with other sizes: as small as they can be where of 32 devices each has
something odd. f32, so that any mistake shows.
"""

import sys
from typing import Any

import pytest

from schedc.placement.experts import experts_of
from schedc.placement.heads import latent_split, split_heads
from schedc.placement.rules import PlacementRules
from schedc.placement.widths import dense_split, head_split
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.importers.import_config import import_config
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from tests.conformance.families import Family
from tests.kernels.built import Mode, in_format
from tests.kernels.devices import run_on

pytestmark = pytest.mark.kernel

RULES = PlacementRules()


def family(name: str, **sizes: Any) -> ModelSpec:
    return in_format(import_config(dict(Family(name).config) | sizes, name), "f32")


LLAMA = family(
    "llama", num_attention_heads=24, num_key_value_heads=6, head_dim=16, intermediate_size=3900, vocab_size=3900
)
"""Dense, grouped-query attention, rope of Llama 3; a loop of two layers."""

DEEPSEEK = family(
    "deepseek_v3",
    num_hidden_layers=3,
    first_k_dense_replace=1,
    num_attention_heads=30,
    num_key_value_heads=30,
    n_routed_experts=24,
    moe_intermediate_size=256,
    vocab_size=3900,
)
"""Latent attention, a dense layer, then a loop of two of experts in groups, with a shared one."""


def test_on_32_devices_kv_heads_have_copies_and_the_last_devices_hold_padding() -> None:
    mixer = LLAMA.layers[0].pattern[0].mixer
    assert isinstance(mixer, Gqa)
    heads = split_heads(mixer.heads, mixer.kv_heads, 32)
    assert [len(heads.query.held(device)) for device in range(32)] == [1] * 24 + [0] * 8
    assert [heads.kv.held(device).start for device in range(24)] == [device // 4 for device in range(24)]
    columns = [dense_split(3900, 32, RULES), head_split(3900, 32, RULES)]
    assert [[len(split.held(device)) for device in range(29, 32)] for split in columns] == [[128, 60, 0]] * 2


def test_on_32_devices_two_share_an_expert_and_most_have_none_that_is_chosen() -> None:
    mixer, moe = DEEPSEEK.layers[0].pattern[0].mixer, DEEPSEEK.layers[-1].pattern[0].feed_forward
    assert isinstance(mixer, Mla)
    assert isinstance(moe, Moe)
    split = experts_of(moe, 32, RULES)
    assert [len(split.experts.held(device)) for device in range(32)] == [2] * 24 + [0] * 8
    assert [len(split.width.held(device)) for device in range(2)] == [128, 128]
    assert 2 * moe.top_k * split.tensor_parallel < 24
    heads = latent_split(mixer.heads, 32, RULES)
    assert [len(heads.held(device)) for device in range(32)] == [1] * 30 + [0] * 2


def cases() -> list:
    """In every run on two devices; the rest takes minutes: an hour for all of 32 devices."""
    found = []
    for name, spec in (("llama", LLAMA), ("deepseek_v3", DEEPSEEK)):
        for devices in (1, 2, 4, 8, 32):
            for mode in ("on_wait", "eager"):
                found.append(
                    pytest.param(spec, devices, mode, id=f"{name} on {devices}, {mode}", marks=_marks(devices))
                )
    return found


def _marks(devices: int) -> list:
    old = pytest.mark.skipif(
        devices >= 8 and sys.version_info < (3, 12),
        reason="on jax 0.10.2 so many devices deadlock on two cores without NPROC",
    )
    return [pytest.mark.long, old]


@pytest.mark.parametrize(("spec", "devices", "mode"), cases())
def test_devices_agree_with_the_reference_without_races(spec: ModelSpec, devices: int, mode: Mode) -> None:
    target = "tpu7x:2x2x4" if devices == 32 else "tpu7x:2x2x1" if devices > 1 else "tpu7x"
    run = run_on(spec, devices, mode, rows=2, seconds=5400, target=target)
    print(f"{run.name}: {run.steps} steps, {run.seconds:.0f} s, logits {run.logits:.1e}, cache {run.cache:.1e}")
    assert run.problems == ()
    assert run.steps > 3
    assert 0 < run.logits < 1e-3 and 0 < run.cache < 1e-3
