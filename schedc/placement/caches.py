"""Which heads of a cache a device keeps: those that its query heads read."""

from __future__ import annotations

from collections.abc import Callable

from schedc.placement.heads import heads_of
from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, whole
from schedc.spec.mixers import Mixer

CACHED_HEADS: dict[str, Callable[..., Split]] = {
    "gqa": lambda mixer, devices, rules: heads_of(mixer, devices, rules).kv,
    "mla": lambda mixer, devices, rules: whole(1),  # One latent, which every query head reads.
}


def cached_heads(mixer: Mixer, devices: int, rules: PlacementRules) -> Split:
    return CACHED_HEADS[mixer.kind](mixer, devices, rules)
