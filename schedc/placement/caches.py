"""Which heads of a cache, or of states, a device keeps: those that its query heads read, or its value heads."""

from __future__ import annotations

from collections.abc import Callable

from schedc.placement.heads import delta_split, heads_of
from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, whole
from schedc.spec.mixers import Mixer

CACHED_HEADS: dict[str, Callable[..., Split]] = {
    "gqa": lambda mixer, devices, rules: heads_of(mixer, devices, rules).kv,
    "mla": lambda mixer, devices, rules: whole(1),  # One latent, which every query head reads.
    "kda": lambda mixer, devices, rules: delta_split(mixer, devices, rules).query,
    "gated_delta": lambda mixer, devices, rules: delta_split(mixer, devices, rules).query,
}


def cached_heads(mixer: Mixer, devices: int, rules: PlacementRules) -> Split:
    return CACHED_HEADS[mixer.kind](mixer, devices, rules)
