"""Tiles of a cache over the devices that read it: over how many, and what is refused."""

import pytest

from schedc.placement.caches import sharing_devices
from schedc.placement.check import problems
from schedc.placement.rules import PlacementRules
from schedc.placement.table import held
from schedc.spec.model import ModelSpec
from tests.reference.moe_specs import small_moe
from tests.reference.recurrent_specs import FEATURES as RECURRENT
from tests.reference.small_specs import latent_spec, small_spec

HEADS, SEQUENCE = PlacementRules(), PlacementRules(kv="sequence")


ONE_DEVICE = "placement.kv: sequence divides a cache over the devices that read it, and there is one device; use heads"


def gqa(heads: int, kv_heads: int, **model: object) -> ModelSpec:
    return small_spec({"heads": heads, "kv_heads": kv_heads}, **model)


def paged(unequal: bool = False) -> ModelSpec:
    """Layers with two kv heads, or with two and with four of them in turn."""
    data = gqa(16, 2, kv={"layout": "paged", "page_tokens": 16}).model_dump(mode="json")
    pattern = data["layers"][0]["pattern"]
    other = pattern[0] | {"mixer": pattern[0]["mixer"] | {"kv_heads": 4}}
    data["layers"][0]["pattern"] = [*pattern, other] if unequal else pattern
    return ModelSpec.model_validate(data)


@pytest.mark.parametrize(
    ("spec", "devices", "over"),
    [
        (gqa(64, 8), 32, 4),
        (gqa(64, 8), 16, 2),
        (gqa(64, 8), 8, 1),
        (gqa(8, 1), 1, 1),
        (gqa(6, 2), 8, 3),
        (latent_spec(), 8, 8),
        (RECURRENT["gated delta"], 8, 1),
    ],
)
def test_tiles_are_dealt_to_the_devices_that_read_the_same_heads(spec: ModelSpec, devices: int, over: int) -> None:
    mixer = spec.layers[0].pattern[0].mixer
    assert sharing_devices(mixer, devices, SEQUENCE) == over
    assert sharing_devices(mixer, devices, HEADS) == 1


@pytest.mark.parametrize(
    ("spec", "devices", "rule", "what", "copies"),
    [
        (gqa(64, 8), 32, "sequence", "1 of 8 kv heads, one tile in 4 of a sequence", 1),
        (gqa(8, 1), 2, "sequence", "one tile in 2 of a sequence", 1),
        (latent_spec(), 8, "sequence", "one tile in 8 of a sequence", 1),
    ],
)
def test_the_placement_says_which_tiles_a_device_has(
    spec: ModelSpec, devices: int, rule: str, what: str, copies: int
) -> None:
    (cache,) = (each for each in held(spec, devices, SEQUENCE) if each.family == "cache")
    assert (cache.rule, cache.what, cache.copies) == (rule, what, copies)


@pytest.mark.parametrize(
    ("spec", "devices", "rules", "said"),
    [
        (gqa(64, 8), 8, {}, "placement.kv: sequence divides a cache that several devices read, and none of the 8 kv "
         "heads is on more than one of 8 devices; use heads"),
        (gqa(8, 1), 1, {}, ONE_DEVICE),
        (latent_spec(), 1, {}, ONE_DEVICE),
        (gqa(28, 4), 8, {}, "placement.kv: sequence divides a cache that several devices read, and none of the 4 kv "
         "heads is on more than one of 8 devices; use heads"),
        (RECURRENT["gated delta"], 8, {}, "placement.kv: sequence divides a cache that several devices read, and the "
         "model has no cache of tokens, so none is on more than one of 8 devices; use heads"),
        (gqa(6, 1), 4, {}, "placement.kv: sequence wants whole groups of 3 devices, which share a kv head, and 4 "
         "devices are not; use 3 devices, or heads"),
        (gqa(8, 2), 8, {"attention": "replicated"},
         "placement.attention: replicated leaves no heads to combine under kv: sequence; use heads"),
        (paged(unequal=True), 8, {}, "placement.kv: sequence divides the caches of layers over 2 and 4 devices, and a "
         "paged cache has one table of pages for all layers; use heads, or a contiguous cache"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused(spec: ModelSpec, devices: int, rules: dict[str, str], said: str) -> None:
    assert list(problems(spec, devices, PlacementRules(kv="sequence", **rules))) == [said]


@pytest.mark.parametrize("rules", [{"attention": "replicated"}, {"dense": "replicated"}, {"head": "replicated"}])
def test_one_device_has_all_that_is_asked_to_be_on_every_device(rules: dict[str, str]) -> None:
    """It changes nothing, and nothing is refused."""
    asked = PlacementRules(**rules)
    assert list(problems(gqa(8, 2), 1, asked)) == []
    assert held(gqa(8, 2), 1, asked) == held(gqa(8, 2), 1, HEADS)


@pytest.mark.parametrize(
    ("experts", "said"),
    [
        ((1, 1), []),
        (
            (1, 2),
            ["placement.experts: expert_parallel 1 times tensor_parallel 2 is 2, not the 1 devices that are used"],
        ),
        (
            (2, 1),
            ["placement.experts: expert_parallel 2 times tensor_parallel 1 is 2, not the 1 devices that are used"],
        ),
    ],
)
def test_one_device_takes_no_groups_of_experts(experts: tuple[int, int], said: list[str]) -> None:
    groups, shared_by = experts
    rules = {"experts": {"expert_parallel": groups, "tensor_parallel": shared_by}}
    assert list(problems(small_moe(), 1, PlacementRules.model_validate(rules))) == said


@pytest.mark.parametrize("spec", [gqa(8, 2), latent_spec(), paged(), RECURRENT["gated delta beside attention"]])
def test_pages_and_layers_that_keep_states_do_not_matter(spec: ModelSpec) -> None:
    assert list(problems(spec, 4, SEQUENCE)) == []
