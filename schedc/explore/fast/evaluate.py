"""How long a step of an ordering takes, in one compiled call: put it together, run it, count the trips left out."""

from __future__ import annotations

from math import inf

from schedc.explore.fast.compose import compose
from schedc.explore.fast.execute import execute
from schedc.explore.fast.jit import compiled


@compiled
def evaluate(
    m, notes_whole, notes_real, bursts, fed, sizes, order, issue, deferred, ring_of, slots, ahead, begin,
    whole, real, marks,
):  # fmt: skip
    """ns; inf if a wait never ends or what is under way has no room. `bursts`, `sizes`: see `Model.numbers`;
    `whole`, `real` and `marks` are written."""
    routes, depth, in_flight = sizes
    n, rest = compose(m, notes_whole, notes_real, order, issue, deferred, ring_of, slots, ahead, begin, whole, real)
    end = execute(
        whole, real, n, rest, bursts[0], bursts[1], bursts[2], bursts[3], bursts[4], len(fed), fed, routes, depth,
        in_flight, marks,
    )  # fmt: skip
    if not 0.0 <= end < inf:
        return inf
    at = 0
    for s in range(len(m.trips)):
        cut = m.trips[s]
        if m.whole_trips[s] > cut:
            end += (m.whole_trips[s] - cut) * (marks[at + cut - 2] - marks[at]) / (cut - 2)
        at += cut
    return end
