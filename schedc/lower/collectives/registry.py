"""The algorithms by name, and collectives made by them."""

from __future__ import annotations

from schedc.errors import UserError
from schedc.lower.collectives.algorithm import Algorithm
from schedc.lower.collectives.hierarchical import HIERARCHICAL
from schedc.lower.collectives.one_shot import ONE_SHOT
from schedc.lower.collectives.protocol import Collective, Exchanged, Kind
from schedc.lower.collectives.ring import RING
from schedc.lower.collectives.two_phase import TWO_PHASE
from schedc.names import nearest

ALGORITHMS = {algorithm.name: algorithm for algorithm in (ONE_SHOT, TWO_PHASE, HIERARCHICAL, RING)}


def algorithms_for(kind: Kind) -> tuple[Algorithm, ...]:
    return tuple(algorithm for algorithm in ALGORITHMS.values() if kind in algorithm.kinds)


def make_collective(name: str, exchanged: Exchanged) -> Collective:
    """Raises UserError for an unknown algorithm, one that does not do this kind, and a group that it cannot serve."""
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        hint = f"; did you mean {' or '.join(nearest(name, ALGORITHMS))}?" if nearest(name, ALGORITHMS) else ""
        raise UserError(f"no collective algorithm is called {name!r}: there are {', '.join(ALGORITHMS)}{hint}")
    if exchanged.kind not in algorithm.kinds:
        others = ", ".join(other.name for other in algorithms_for(exchanged.kind))
        raise UserError(
            f"collective {exchanged.name}: {name} has no {exchanged.kind}, only {', '.join(algorithm.kinds)}; "
            f"{exchanged.kind} is done by {others}"
        )
    return algorithm.build(exchanged)
