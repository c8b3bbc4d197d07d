"""The placement in words: what a device has of each weight family and of the caches, in how many copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from schedc.placement.caches import cached_heads, sharing_devices
from schedc.placement.experts import experts_of
from schedc.placement.heads import delta_split, heads_of
from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, evenly, whole
from schedc.placement.widths import dense_split, head_split, shared_split
from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.mixers import Mixer
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec


@dataclass(frozen=True)
class Held:
    """`rule`: heads, columns, vocab, experts or replicated. `padding`: the share of the places that hold nothing.

    `copies`: on how many devices a number of the family is, the most where its weights differ in that.
    """

    family: str
    rule: str
    what: str
    copies: int
    padding: float = 0.0


def held(spec: ModelSpec, devices: int, rules: PlacementRules) -> tuple[Held, ...]:
    """In the order of the model, each different statement once."""
    found = [Held("embedding", "replicated", f"all {spec.vocab} rows", devices)]
    for run in spec.layers:
        for block in run.pattern:
            found += MIXERS[block.mixer.kind](block.mixer, devices, rules)
            found += FEED_FORWARDS[block.feed_forward.kind](block.feed_forward, devices, rules)
            found.append(_cache(block.mixer, devices, rules))
    found.append(_columns("head", "vocab", spec.vocab, head_split(spec.vocab, devices, rules), devices, "columns"))
    return tuple(dict.fromkeys(found))


def _gqa(gqa: Gqa, devices: int, rules: PlacementRules) -> Iterator[Held]:
    split = heads_of(gqa, devices, rules)
    if not split.is_split:
        yield Held("attention", "replicated", f"all {gqa.heads} query and {gqa.kv_heads} kv heads", devices)
        return
    what = f"{split.query.each} of {gqa.heads} query heads, {split.kv.each} of {gqa.kv_heads} kv heads"
    yield Held("attention", "heads", what, _copies(split.kv, devices), _padding(split.query))


def _mla(mla: Mla, devices: int, rules: PlacementRules) -> Iterator[Held]:
    split = evenly(mla.heads, devices) if rules.attention == "heads" else whole(mla.heads)
    yield _columns("attention", "heads", mla.heads, split, devices, "heads")


def _kda(kda: Kda, devices: int, rules: PlacementRules) -> Iterator[Held]:
    yield _columns("attention", "heads", kda.heads, delta_split(kda, devices, rules).query, devices, "heads")


def _gated_delta(mixer: GatedDelta, devices: int, rules: PlacementRules) -> Iterator[Held]:
    split = delta_split(mixer, devices, rules)
    if not split.is_split:
        what = f"all {mixer.key_heads} key and {mixer.value_heads} value heads"
        yield Held("attention", "replicated", what, devices)
        return
    what = f"{split.kv.each} of {mixer.key_heads} key heads, {split.query.each} of {mixer.value_heads} value heads"
    yield Held("attention", "heads", what, _copies(split.kv, devices), _padding(split.query))


def _dense(dense: Dense, devices: int, rules: PlacementRules) -> Iterator[Held]:
    yield _columns("dense", "columns", dense.width, dense_split(dense.width, devices, rules), devices, "columns")


def _moe(moe: Moe, devices: int, rules: PlacementRules) -> Iterator[Held]:
    yield Held("router", "replicated", f"all {moe.experts} columns", devices)
    if moe.shared is not None:
        split = shared_split(moe.shared.width, devices)
        yield _columns("shared", "columns", moe.shared.width, split, devices, "columns")
    experts = experts_of(moe, devices, rules)
    if not experts.is_split:
        yield Held("experts", "replicated", f"all {moe.experts} experts", devices)
        return
    what = f"{experts.experts.each} of {moe.experts} experts, {experts.width.each} of {moe.width} columns"
    yield Held("experts", "experts", what, 1, experts.waste)


def _cache(mixer: Mixer, devices: int, rules: PlacementRules) -> Held:
    split, sharing = cached_heads(mixer, devices, rules), sharing_devices(mixer, devices, rules)
    things = EXPANDED if isinstance(mixer, Mla) and mixer.cache == "expanded" else CACHED[mixer.kind]
    if sharing > 1:
        tiles = f"one tile in {sharing} of a sequence"
        what = f"{split.each} of {split.total} {things}, {tiles}" if split.is_split else tiles
        return Held("cache", "sequence", what, _copies(split, devices) // sharing, _padding(split))
    return _columns("cache", "heads", split.total, split, devices, things)


def _columns(family: str, rule: str, total: int, split: Split, devices: int, things: str) -> Held:
    if not split.is_split:
        return Held(family, "replicated", f"all {total} {things}", devices)
    return Held(family, rule, f"{split.each} of {total} {things}", _copies(split, devices), _padding(split))


def _copies(split: Split, devices: int) -> int:
    return sum(0 in split.held(device) for device in range(devices))


def _padding(split: Split) -> float:
    return split.padding / (split.each * split.ring)


CACHED = {"gqa": "kv heads", "mla": "latent", "kda": "heads' states", "gated_delta": "heads' states"}
"""What a cache is divided into."""

EXPANDED = "heads' keys and values"

Describe = Callable[..., Iterator[Held]]
MIXERS: dict[str, Describe] = {"gqa": _gqa, "mla": _mla, "kda": _kda, "gated_delta": _gated_delta}
FEED_FORWARDS: dict[str, Describe] = {"dense": _dense, "moe": _moe}
