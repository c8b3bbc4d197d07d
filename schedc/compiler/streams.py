"""The residual stream after tapped layers, beside the reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

EXACT = 2e-3
"""Largest difference that f32 sums in another order may make to a logit, key or value of order one."""


@dataclass(frozen=True)
class Streams:
    """f32[taps, rows, hidden] each: as the kernel says it, exactly, and rounded where a kernel may round."""

    layers: tuple[int, ...]
    got: np.ndarray
    exact: np.ndarray
    rounded: np.ndarray

    def limit(self, tap: int, active: Sequence[bool]) -> float:
        """As for logits, and as much more as the stream is larger than one."""
        rows = np.array(active)
        exact = self.exact[tap, rows]
        if not exact.size:
            return EXACT
        return float(EXACT * max(1.0, np.abs(exact).max()) + 2 * np.abs(self.rounded[tap, rows] - exact).max())

    def largest(self, tap: int, row: int) -> float:
        """Difference of an element; infinite if one is no number."""
        difference = self.got[tap, row] - self.exact[tap, row]
        return float(np.where(np.isfinite(difference), np.abs(difference), np.inf).max())

    def first(self, tap: int, row: int, limit: float) -> int | None:
        """The first element that differs by more."""
        difference = np.abs(self.got[tap, row] - self.exact[tap, row])
        wrong = np.flatnonzero(~(difference <= limit))
        return int(wrong[0]) if len(wrong) else None


def stream_problems(streams: Streams, active: Sequence[bool]) -> list[str]:
    """Of every row the first layer and element that differ."""
    return list(_problems(streams, active))


def _problems(streams: Streams, active: Sequence[bool]) -> Iterator[str]:
    for row, counts in enumerate(active):
        for tap, layer in enumerate(streams.layers if counts else ()):
            limit = streams.limit(tap, active)
            element = streams.first(tap, row, limit)
            if element is not None:
                got, exact = streams.got[tap, row, element], streams.exact[tap, row, element]
                yield (
                    f"layer {layer}: the stream after it of row {row} differs, first in element {element}: {got:.5g}, "
                    f"the reference says {exact:.5g} (largest difference {streams.largest(tap, row):.2g}, limit "
                    f"{limit:.2g})"
                )
                break
