"""Where the devices of a step sum what each has a part of, and by what they can do it there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schedc.errors import UserError
from schedc.lower.block import BlockLowering
from schedc.lower.collectives.communication import FUSED, SUM_SITES, SumSite
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import SUBLANES, Exchanged
from schedc.lower.collectives.registry import algorithms_for
from schedc.lower.feed_forwards.fused_latent import can_fuse
from schedc.lower.graph import PER_WORD, StepShape
from schedc.spec.feed_forwards.moe import Moe

WIRES = tuple(PER_WORD)


def sum_sites(blocks: Iterable[BlockLowering], shape: StepShape) -> dict[SumSite, tuple[str, ...]]:
    """Site → the algorithms that can serve all its places. Empty for one device."""
    if shape.devices == 1:
        return {}
    algorithms = tuple(_algorithms(shape))
    found: dict[SumSite, tuple[str, ...]] = {}
    for block in blocks:
        moe = block.block.feed_forward
        latent = moe.latent if isinstance(moe, Moe) else None
        if block.mixer.partial:
            found["mixer"] = algorithms
        if block.feed_forward.partial or latent is not None:
            found["feed_forward"] = algorithms
        if latent is not None:
            before = found.get("latent", (*algorithms, FUSED))
            found["latent"] = before if can_fuse(latent, shape) else algorithms
    return {site: found[site] for site in SUM_SITES if site in found}


def _algorithms(shape: StepShape) -> Iterator[str]:
    group, topology = Group(shape.devices, shape.devices), shape.communication.topology
    for algorithm in algorithms_for("all_reduce"):
        try:
            algorithm.build(Exchanged("a", "all_reduce", group, topology, SUBLANES))
        except UserError:
            continue  # It cannot serve this group.
        yield algorithm.name


def site_problems(
    sites: dict[SumSite, tuple[str, ...]], collectives: Iterable[tuple[str, str]], wires: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """What cannot be of the algorithms and wires that are asked for by site."""
    there = f"there are {', '.join(sites)}" if sites else "this step sums nothing over devices"
    for site, algorithm in collectives:
        can = next((can for name, can in sites.items() if name == site), None)
        if can is None:
            yield f"collective names {site}, where nothing is summed; {there}"
        elif algorithm not in can:
            yield f"collective of {site} is {algorithm}; it must be one of {', '.join(can)}"
    for site, wire in wires:
        if site not in sites:
            yield f"wire names {site}, where nothing is summed; {there}"
        elif wire not in WIRES:
            yield f"wire of {site} is {wire}; it must be one of {', '.join(WIRES)}"
