"""What rules cannot be followed."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.placement.caches import SHARING, cached_heads, sharing_devices
from schedc.placement.rules import PlacementRules
from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.model import ModelSpec


def problems(spec: ModelSpec, devices: int, rules: PlacementRules) -> Iterator[str]:
    """One line a rule that does not belong to the model, or does not come out with these devices."""
    feed_forwards = [block.feed_forward for run in spec.layers for block in run.pattern]
    if rules.dense != "columns" and not any(isinstance(part, Dense) for part in feed_forwards):
        yield "placement.dense: the model has no dense feed-forward; leave it out"
    if rules.kv == "sequence":
        yield from _in_turn(spec, devices, rules)
    experts = rules.experts
    if experts is None:
        return
    moes = [part for part in feed_forwards if isinstance(part, Moe)]
    if not moes:
        yield "placement.experts: the model has no experts; leave it out"
    if experts.expert_parallel * experts.tensor_parallel != devices:
        yield (
            f"placement.experts: expert_parallel {experts.expert_parallel} times tensor_parallel "
            f"{experts.tensor_parallel} is {experts.expert_parallel * experts.tensor_parallel}, not the {devices} "
            "devices that are used"
        )
    most = min((moe.experts for moe in moes), default=experts.expert_parallel)
    if experts.expert_parallel > most:
        yield (
            f"placement.experts: {experts.expert_parallel} groups for {most} experts would leave devices without any; "
            f"use expert_parallel {most} or less"
        )


def _in_turn(spec: ModelSpec, devices: int, rules: PlacementRules) -> Iterator[str]:
    """Why the tiles of a cache cannot lie on devices in turn."""
    if rules.attention == "replicated":
        yield "placement.attention: replicated leaves no heads to combine under kv: sequence; use heads"
        return
    if devices == 1:
        yield "placement.kv: sequence divides a cache over the devices that read it, and there is one device; use heads"
        return
    cached = list(dict.fromkeys(at.block.mixer for at in spec.iter_layers() if at.block.mixer.kind in SHARING))
    sharing = [sharing_devices(mixer, devices, rules) for mixer in cached]
    if max(sharing, default=1) == 1:
        heads = [cached_heads(mixer, devices, rules).total for mixer in cached]
        have = f"none of the {max(heads)} kv heads is" if heads else "the model has no cache of tokens, so none is"
        yield (
            f"placement.kv: sequence divides a cache that several devices read, and {have} on more than one of "
            f"{devices} devices; use heads"
        )
    if spec.kv.layout == "paged" and len(set(sharing)) > 1:
        numbers = " and ".join(str(number) for number in sorted(set(sharing)))
        yield (
            f"placement.kv: sequence divides the caches of layers over {numbers} devices, and a paged cache has one "
            "table of pages for all layers; use heads, or a contiguous cache"
        )
    for number in sorted({number for number in sharing if devices % number}):
        yield (
            f"placement.kv: sequence wants whole groups of {number} devices, which share a kv head, and {devices} "
            f"devices are not; use {devices // number * number} devices, or heads"
        )
