"""Taps: the residual stream after chosen layers is written out, for a draft model to read.

Of block attention residuals it is `x`, the sum of the block of layers so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from schedc.ir.expr import Compare, Const
from schedc.ir.program import Array, Buffer, Op, Region, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Declarations, Phase, Site, StepShape
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.residuals.stream import residual_rows
from schedc.spec.model import ModelSpec


class TapLowering:
    """`hidden` f32[taps, rows, hidden], in the panels of `x`, on every device.

    The stream is copied before its transfer starts: the layers behind it go on meanwhile. There is one copy, so a tap
    waits until the one before it has left.
    """

    def __init__(self, spec: ModelSpec, shape: StepShape) -> None:
        self.taps, self.rows = shape.taps, residual_rows(spec, shape)
        self.written = SemaphoreRef("hidden_written")

    def declarations(self) -> Declarations:
        if not self.taps:
            return Declarations()
        return Declarations(
            (Buffer("tapped", WORK, self.rows),),
            (Array("hidden", len(self.taps) * self.rows, "output"),),
            semaphores=(Semaphore(self.written.name),),
        )

    def after(self, place: Place) -> tuple[Phase, ...]:
        """What follows the layers at a place of a run."""
        here = [(index, place.layers.index(tap)) for index, tap in enumerate(self.taps) if tap in place.layers]

        def ops(site: Site) -> tuple[Op, ...]:
            if len(place.layers) == 1:
                return self._write(here[0][0])
            return tuple(When((Compare("==", site.trip, Const(trip)),), self._write(index)) for index, trip in here)

        return (Phase(place.named("tap"), ops),) if here else ()

    def settle(self) -> tuple[Phase, ...]:
        """At the end of the step."""
        return (Phase("taps_written", lambda site: (self._wait(),)),) if self.taps else ()

    def _write(self, index: int) -> tuple[Op, ...]:
        copy = Region("tapped", self.rows)
        return (
            *((self._wait(),) if index else ()),
            compute("move", {"x": Region("x", self.rows)}, {"out": copy}),
            Start(copy, Region("hidden", self.rows, Const(index * self.rows)), self.written),
        )

    def _wait(self) -> Op:
        return Wait(self.written, self.rows)


def tap_problems(spec: ModelSpec, taps: tuple[int, ...]) -> Iterator[str]:
    """What a list of layers cannot be tapped for."""
    for tap in taps:
        if not 0 <= tap < spec.num_layers:
            yield f"taps: {tap} is not a layer, they are 0 to {spec.num_layers - 1}"
    for before, tap in pairwise(taps):
        if before >= tap:
            yield f"taps: {tap} comes after {before}; give every layer once, in the order of the model"
