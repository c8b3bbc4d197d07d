"""What the phases of a step leave, beside what the reference says, in the order in which they are executed.

A phase is compared by what it leaves in buffers (`Phase.values`), by what its layer keeps in HBM, or by the logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from schedc.compiler.noted import Seen, seen
from schedc.compiler.recording import Recorded
from schedc.compiler.trial import Difference, Outcome, difference
from schedc.compiler.winners import WINNERS, Ranked, ranked
from schedc.lower.values import KEPT, LOGITS
from schedc.spec.model import ModelSpec
from schedc.weights.cache import HEADS_AND_SIDES
from schedc.weights.head_order import kernel_cache
from schedc.weights.kept import Recurrent


@dataclass(frozen=True)
class Compared:
    """The largest difference of a value of a row; the first element beyond the limit, if any.

    `layer` is None outside of the layers, `device` where there is one or all have it together. `element` indexes the
    numbers of that row, such as (head, column); None if all are within the limit.
    """

    phase: str
    layer: int | None
    what: str
    device: int | None
    row: int
    largest: float
    limit: float
    element: tuple[int, ...] | None
    got: float | None
    expected: float | None
    note: str = ""
    """What differs and is right all the same."""

    def to_dict(self) -> dict[str, Any]:
        """With `ratio`: how much of the limit the largest difference is."""
        element = None if self.element is None else list(self.element)
        return asdict(self) | {"element": element, "ratio": self.largest / self.limit}

    def line(self) -> str:
        """Of one that differs: where, and by how much."""
        where = f"phase {self.phase}" if self.layer is None else f"phase {self.phase} of layer {self.layer}"
        device = "" if self.device is None else f" on device {self.device}"
        return (
            f"{where}: {self.what} of row {self.row}{device} differs, first in element {self.element}: {self.got:.6g}, "
            f"the reference says {self.expected:.6g} (largest difference {self.largest:.2g}, limit {self.limit:.2g})"
        )


def compared(outcome: Outcome, spec: ModelSpec, records: tuple[Recorded, ...]) -> Iterator[Compared]:
    """What was recorded, in the order in which a step computes it."""
    outcome = outcome.routed or outcome
    found = difference(outcome, spec)
    for _, segment in groupby(records, key=lambda one: one.segment):
        own = tuple(segment)
        for trip in range(max(len(one.layers) or 1 for one in own)):
            for one in own:
                yield from _one(outcome, spec, found, one, trip)


def _one(outcome: Outcome, spec: ModelSpec, found: Difference, one: Recorded, trip: int) -> Iterator[Compared]:
    if one.value == KEPT:
        yield from _kept(outcome, spec, one.phase, one.layers[trip], found.cache_limit)
    elif one.value == LOGITS:
        value = Seen(one.phase, None, "logits", None, outcome.logits, outcome.exact_logits, found.logits_limit)
        yield from _rows(outcome, value)
    elif outcome.copies is not None and one.value.meaning == WINNERS:
        for own in ranked(outcome.copies, one, trip, spec, outcome.step.active):
            yield _of_winners(one.phase, one.layers[trip], own)
    elif outcome.copies is not None:
        for value in seen(outcome.copies, one, trip, spec, outcome.step.active):
            yield from _rows(outcome, value)


def _rows(outcome: Outcome, value: Seen) -> Iterator[Compared]:
    for row, active in enumerate(outcome.step.active):
        if active:
            yield _of_row(value, row, value.got[row], value.exact[row])


def _kept(outcome: Outcome, spec: ModelSpec, phase: str, layer: int, limit: float) -> Iterator[Compared]:
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
                value = Seen(phase, layer, f"kept {name}", None, got, expected, limit)
                yield _of_row(value, row, got[where], expected[where])


def _of_winners(phase: str, layer: int, found: Ranked) -> Compared:
    """By their scores; the numbers are those of experts."""
    largest, place = float(found.off.max()), found.wrong
    where = (phase, layer, WINNERS, found.device, found.row, largest, found.limit)
    if place is None:
        return Compared(*where, None, None, None, found.note)
    return Compared(*where, (place,), float(found.ids[place]), float(found.best[place]))


def _of_row(value: Seen, row: int, got: np.ndarray, expected: np.ndarray) -> Compared:
    difference = np.abs(got - expected)
    wrong = np.argwhere(~(difference <= value.limit))
    largest = float(np.where(np.isfinite(difference), difference, np.inf).max())
    where = (value.phase, value.layer, value.name, value.device, row, largest, value.limit)
    if not len(wrong):
        return Compared(*where, None, None, None)
    element = tuple(int(index) for index in wrong[0])
    return Compared(*where, element, float(got[element]), float(expected[element]))
