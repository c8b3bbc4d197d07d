"""Hierarchical: the devices of a chip first, then the chips of a host, then the hosts: slow links carry the least.

An all-reduce scatters at each level but the last, where the sums are exchanged at once, and gathers on the way back.
"""

from __future__ import annotations

from math import prod

from schedc.lower.collectives.algorithm import Algorithm
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.stages import Combine, Gather, Scatter, Stage, Staged, hops_of


def build(exchanged: Exchanged) -> Staged:
    levels = exchanged.topology.levels(exchanged.group)
    sizes = tuple(level.size for level in levels)
    stages: list[tuple[Stage, Combine]] = []
    down: tuple[Group, ...]
    up: tuple[Group, ...]
    top: Group | None

    def add(stage: type[Scatter] | type[Gather], level: Group, block: int, combine: Combine) -> None:
        number = len(stages)
        stages.append(
            (stage(f"{exchanged.name}_{number}", level, block, exchanged.stage_pool(number), exchanged.pieces), combine)
        )

    match exchanged.kind:
        case "all_reduce":
            down, top, up = levels[:-1], levels[-1], tuple(reversed(levels[:-1]))
            block = exchanged.words(exchanged.rows, prod(sizes[:-1]))
        case "reduce_scatter":
            down, top, up = levels, None, ()
            block = exchanged.words(exchanged.target_rows) * exchanged.group.size
        case _:
            down, top, up = (), None, tuple(reversed(levels))
            block = exchanged.words(exchanged.rows)
    for level in down:
        block //= level.size
        add(Scatter, level, block, "sum")
    if top is not None:
        add(Gather, top, block, "sum")
    for level in up:
        add(Gather, level, block, "keep")
        block *= level.size
    return Staged(exchanged, tuple(stages), sizes)


HIERARCHICAL = Algorithm(
    "hierarchical", ("all_reduce", "all_gather", "reduce_scatter"), build, lambda e: hops_of(build(e))
)
