"""Attention heads over devices: a kv head stays beside the query heads that read it."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, evenly, whole
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda


@dataclass(frozen=True)
class HeadSplit:
    """Query heads and kv heads of a device: it holds whole groups, or a part of the group of one kv head."""

    query: Split
    kv: Split

    @property
    def is_split(self) -> bool:
        return self.query.is_split

    @property
    def group(self) -> int:
        """Query heads a kv head on a device."""
        return self.query.each // self.kv.each


def split_heads(heads: int, kv_heads: int, devices: int) -> HeadSplit:
    """Whole kv heads while there are enough; else each is copied to as many devices as share its query heads.

    Copies are as many as divide a group evenly, so that a device reads one kv head. Where that leaves devices over, or
    kv heads do not divide, the last devices hold padding.
    """
    if devices == 1:
        return HeadSplit(whole(heads), whole(kv_heads))
    group = heads // kv_heads
    if kv_heads >= devices:
        kv = evenly(kv_heads, devices)
        return HeadSplit(Split(heads, kv.each * group, 1, devices), kv)
    copies = max(n for n in range(1, devices // kv_heads + 1) if group % n == 0)
    used = -(-devices // copies)
    return HeadSplit(Split(heads, group // copies, 1, devices), Split(kv_heads, 1, copies, used))


def split_of(heads: int, kv_heads: int, devices: int, rules: PlacementRules) -> HeadSplit:
    """How heads are divided by the rules, and so the cache."""
    return split_heads(heads, kv_heads, devices if rules.attention == "heads" else 1)


def heads_of(mixer: Gqa, devices: int, rules: PlacementRules) -> HeadSplit:
    return split_of(mixer.heads, mixer.kv_heads, devices, rules)


def latent_split(heads: int, devices: int, rules: PlacementRules) -> Split:
    """The heads of latent attention: equal shares, since every device has the latents that all of them read."""
    return evenly(heads, devices if rules.attention == "heads" else 1)


def delta_split(mixer: Kda | GatedDelta, devices: int, rules: PlacementRules) -> HeadSplit:
    """The heads of a delta rule: `query` are the value heads, which have the states, `kv` the key heads they read."""
    if isinstance(mixer, Kda):
        return split_of(mixer.heads, mixer.heads, devices, rules)
    return split_of(mixer.value_heads, mixer.key_heads, devices, rules)
