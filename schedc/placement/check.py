"""What rules cannot be followed."""

from __future__ import annotations

from collections.abc import Iterator

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
        yield from _in_turn(spec, rules)
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


def _in_turn(spec: ModelSpec, rules: PlacementRules) -> Iterator[str]:
    """What a cache whose tiles lie on the devices in turn cannot be combined with."""
    kinds = sorted({at.block.mixer.kind for at in spec.iter_layers() if at.block.mixer.kind != "mla"})
    if kinds:
        yield f"placement.kv: sequence is not supported with {', '.join(kinds)}, only with mla; use heads"
    if rules.attention == "replicated":
        yield "placement.attention: replicated leaves no heads to combine under kv: sequence; use heads"
    if spec.kv.layout == "paged":
        yield "placement.kv: sequence is not supported with kv.layout paged yet; use heads, or a contiguous cache"
