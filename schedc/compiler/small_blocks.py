"""The size of the blocks of a small model with block attention residuals."""

from __future__ import annotations

from schedc.lower.residuals.block_attention import beginnings
from schedc.spec.model import ModelSpec


def small_block(spec: ModelSpec, block: int, trips: int) -> int:
    """Layers of a block of the model with at most `trips` trips a run, so that its program has the same shape.

    As many of a block as before if they begin at the same places still, else as many as are nearest to it; if there
    are none, `block`.
    """
    wanted = _shape(spec, block, max(run.repeat for run in spec.layers))
    smaller = range(block - 1, 0, -1)
    return next((size for size in (block, *smaller) if _shape(spec, size, trips) == wanted), block)


def _shape(spec: ModelSpec, block: int, trips: int) -> list[tuple[str, bool]]:
    """Of every place of every run: where blocks begin, and whether it comes before any other layer."""
    found: list[tuple[str, bool]] = []
    first = 0
    for run in spec.layers:
        period, repeat = len(run.pattern), min(run.repeat, trips)
        for place in range(first, first + period):
            layers = range(place, place + repeat * period, period)
            found.append((beginnings(layers, block), set(layers) == {0}))
        first += repeat * period
    return found
