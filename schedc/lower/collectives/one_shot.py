"""One-shot: every device sends all it has to every other one. One latency, and the most bytes."""

from __future__ import annotations

from schedc.lower.collectives.algorithm import Algorithm
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.stages import Gather, Scatter, Staged, Swap, hops_of


def build(exchanged: Exchanged) -> Staged:
    name, group, rows = exchanged.name, exchanged.group, exchanged.rows
    pool, pieces = exchanged.pool, exchanged.pieces
    match exchanged.kind:
        case "all_reduce":
            return Staged(exchanged, ((Gather(name, group, exchanged.words(rows), pool, pieces), "sum"),))
        case "all_gather":
            return Staged(
                exchanged, ((Gather(name, group, exchanged.words(rows), pool, pieces), "keep"),), (group.size,)
            )
        case "reduce_scatter":
            part = exchanged.words(rows // group.size)
            return Staged(exchanged, ((Scatter(name, group, part, pool, pieces), "sum"),), (group.size,))
        case "exchange":
            return Staged(exchanged, ((Swap(name, group, exchanged.words(rows), pool, pieces), "keep"),))


ONE_SHOT = Algorithm(
    "one_shot", ("all_reduce", "all_gather", "reduce_scatter", "exchange"), build, lambda e: hops_of(build(e))
)
