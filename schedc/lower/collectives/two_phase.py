"""Reduce-scatter and all-gather: each device adds one part for all, then sends it. Two latencies, 2/n of the bytes.

One slot is enough: a peer that scatters again has the sum of this device, which has read its blocks by then, and one
that gathers again has what this device scattered next, after it had read the sums.
"""

from __future__ import annotations

from schedc.lower.collectives.algorithm import Algorithm
from schedc.lower.collectives.protocol import Exchanged
from schedc.lower.collectives.stages import Gather, Scatter, Staged, hops_of


def build(exchanged: Exchanged) -> Staged:
    group = exchanged.group
    part = exchanged.part
    scatter = Scatter(f"{exchanged.name}_0", group, part, exchanged.stage_pool(0), exchanged.pieces, single=True)
    gather = Gather(f"{exchanged.name}_1", group, part, exchanged.stage_pool(1), exchanged.pieces, single=True)
    return Staged(exchanged, ((scatter, "sum"), (gather, "keep")), in_panels=exchanged.in_panels)


TWO_PHASE = Algorithm("two_phase", ("all_reduce",), build, lambda e: hops_of(build(e)))
