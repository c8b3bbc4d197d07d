"""Placements beside the one that is asked for: each rule another way, one at a time, where the model takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.compiler.placement import least_bytes
from schedc.errors import SchedcError
from schedc.explore.setting import Setting
from schedc.placement.rules import ExpertRules, PlacementRules
from schedc.spec.feed_forwards.moe import Moe

_OTHER_WAYS = {
    "attention": ("heads", "replicated"),
    "dense": ("columns", "replicated"),
    "head": ("vocab", "replicated"),
    "kv": ("heads", "sequence"),
}
"""Rule → what it may say."""


def placements_beside(setting: Setting) -> dict[str, Setting]:
    """By what is changed, as in `experts 8x4`, the settings whose weights and caches fit the devices."""
    found: dict[str, Setting] = {}
    for name, rules in _changed(setting):
        other = replace(setting, shape=replace(setting.shape, placement=rules))
        try:
            if least_bytes(other.spec, other.shape) <= other.target.capability.hbm_usable_bytes:
                found[name] = other
        except SchedcError:
            continue  # The model, or these devices, cannot be placed so.
    return found


def _changed(setting: Setting) -> Iterator[tuple[str, PlacementRules]]:
    rules, devices = setting.shape.placement, setting.shape.devices
    if devices == 1:
        return
    if any(isinstance(block.feed_forward, Moe) for run in setting.spec.layers for block in run.pattern):
        for shared in (n for n in range(1, devices + 1) if devices % n == 0):
            experts = ExpertRules(expert_parallel=devices // shared, tensor_parallel=shared)
            if experts != rules.experts:
                yield f"experts {devices // shared}x{shared}", rules.model_copy(update={"experts": experts})
    for rule, ways in _OTHER_WAYS.items():
        for way in ways:
            if way != getattr(rules, rule):
                yield f"{rule} {way}", rules.model_copy(update={rule: way})
