"""Which heads of a cache, or of states, a device keeps, and which tiles: those that its query heads read, or its value
heads; all tiles, or in turn with the other devices whose query heads read the same."""

from __future__ import annotations

from collections.abc import Callable

from schedc.placement.heads import delta_split, heads_of, latent_split
from schedc.placement.rules import PlacementRules
from schedc.placement.split import Split, whole
from schedc.spec.mixers import Mixer
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec

CACHED_HEADS: dict[str, Callable[..., Split]] = {
    "gqa": lambda mixer, devices, rules: heads_of(mixer, devices, rules).kv,
    "mla": lambda mixer, devices, rules: _of_mla(mixer, devices, rules),
    "kda": lambda mixer, devices, rules: delta_split(mixer, devices, rules).query,
    "gated_delta": lambda mixer, devices, rules: delta_split(mixer, devices, rules).query,
}


def _of_mla(mla: Mla, devices: int, rules: PlacementRules) -> Split:
    """One latent, which every query head reads, or the expanded keys and values of each."""
    return whole(1) if mla.cache == "absorbed" else latent_split(mla.heads, devices, rules)


def cached_heads(mixer: Mixer, devices: int, rules: PlacementRules) -> Split:
    return CACHED_HEADS[mixer.kind](mixer, devices, rules)


SHARING: dict[str, Callable[..., int]] = {
    "gqa": lambda mixer, devices, rules: heads_of(mixer, devices, rules).kv.every,
    "mla": lambda mixer, devices, rules: devices if mixer.cache == "absorbed" else 1,
}
"""Neighbouring devices that read the same cache."""


def sharing_devices(mixer: Mixer, devices: int, rules: PlacementRules) -> int:
    """Over how many neighbouring devices the tiles of a sequence lie in turn; 1: each has all of its heads' tiles.

    A mixer that keeps a state has no tiles.
    """
    sharing = SHARING.get(mixer.kind)
    return sharing(mixer, devices, rules) if rules.kv == "sequence" and sharing is not None else 1


def devices_in_turn(spec: ModelSpec, devices: int, rules: PlacementRules) -> int:
    """The largest such number of a layer; of a paged cache that of all, as they have one table of pages."""
    mixers = (at.block.mixer for at in spec.iter_layers())
    return max((sharing_devices(mixer, devices, rules) for mixer in mixers if mixer.kind in SHARING), default=1)
