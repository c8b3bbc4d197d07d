"""Exchanges that several places of a model make one after the other through the same buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schedc.ir.expr import Expr
from schedc.lower.collectives.protocol import occurrence_parity


@dataclass(frozen=True)
class Turn:
    """Where the exchange of one place stands among all that share its buffers: the first one, and how many a trip."""

    first: int
    per_trip: int

    def parity(self, trip: Expr) -> Expr:
        return occurrence_parity(self.first, self.per_trip, 0, trip)


def turn_of(layers: Sequence[int], sharing: Sequence[int]) -> Turn:
    """Of the place that stands at `layers`; `sharing` are all layers that share the buffers, in their order."""
    at = [sharing.index(layer) for layer in layers[:2]]
    return Turn(at[0], at[-1] - at[0])
