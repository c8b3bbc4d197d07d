"""What can be compared with the reference inside a step: what every layer keeps, and the stream behind it.

The interpreter gives what a kernel writes to HBM: the new keys and values or states of a layer, and, with a tap after
every layer, the residual stream. A phase of a layer is so compared by what its layer keeps and leaves; a phase behind
the layers by the logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from schedc.compiler.streams import Streams
from schedc.compiler.trial import Outcome, difference
from schedc.spec.model import ModelSpec
from schedc.weights.cache import HEADS_AND_SIDES
from schedc.weights.head_order import kernel_cache
from schedc.weights.kept import Recurrent

LOGITS = -1
"""The layer of what is behind all layers."""


@dataclass(frozen=True)
class Compared:
    """The largest difference of what a layer keeps or leaves of a row; the first element beyond the limit, if any.

    `element` indexes the numbers of that row, such as (head, column); None if all are within the limit.
    """

    layer: int
    what: str
    row: int
    largest: float
    limit: float
    element: tuple[int, ...] | None
    got: float | None
    expected: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"element": None if self.element is None else list(self.element)}


def compared(outcome: Outcome, spec: ModelSpec) -> Iterator[Compared]:
    """In the order in which a step computes them: layer by layer what it keeps, then the stream; then the logits."""
    found = difference(outcome, spec)
    for at in spec.iter_layers():
        yield from _kept(outcome, spec, at.layer, found.cache_limit)
        if outcome.streams is not None and at.layer in outcome.streams.layers:
            yield from _stream(outcome, outcome.streams, at.layer)
    for row, active in enumerate(outcome.step.active):
        if active:
            yield _one(LOGITS, "logits", row, outcome.logits[row], outcome.exact_logits[row], found.logits_limit)


def _kept(outcome: Outcome, spec: ModelSpec, layer: int, limit: float) -> Iterator[Compared]:
    at = next(at for at in spec.iter_layers() if at.layer == layer)
    recurrent = isinstance(outcome.got[layer], Recurrent)
    exact = outcome.exact[layer] if recurrent else kernel_cache(outcome.exact[layer], at.block.mixer)
    names = (
        Recurrent._fields if recurrent else [s.name for s in HEADS_AND_SIDES[at.block.mixer.kind](at.block.mixer)[1]]
    )
    for row, active in enumerate(outcome.step.active):
        for name, got, expected in zip(names, outcome.got[layer], exact, strict=True):
            where = (row,) if recurrent else (outcome.step.sequences[row], outcome.step.positions[row])
            if active:
                yield _one(layer, name, row, got[where], expected[where], limit)


def _stream(outcome: Outcome, streams: Streams, layer: int) -> Iterator[Compared]:
    tap = streams.layers.index(layer)
    limit = streams.limit(tap, outcome.step.active)
    for row, active in enumerate(outcome.step.active):
        if active:
            yield _one(layer, "stream", row, streams.got[tap, row], streams.exact[tap, row], limit)


def _one(layer: int, what: str, row: int, got: np.ndarray, expected: np.ndarray, limit: float) -> Compared:
    difference = np.abs(got - expected)
    wrong = np.argwhere(~(difference <= limit))
    largest = float(np.where(np.isfinite(difference), difference, np.inf).max())
    if not len(wrong):
        return Compared(layer, what, row, largest, limit, None, None, None)
    element = tuple(int(index) for index in wrong[0])
    return Compared(layer, what, row, largest, limit, element, float(got[element]), float(expected[element]))
