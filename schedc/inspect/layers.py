"""Layers as spans of time: an order of phases may let those of two layers take turns where they meet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from schedc.inspect.record import Step
from schedc.ir.program import Loop, Op, Phase, walk

_PLACE = re.compile(r"_\d+_\d+$")


@dataclass(frozen=True, slots=True)
class Span:
    """A phase or a layer, from `began` to `ended` (ns)."""

    name: str
    began: float
    ended: float
    op: int


def layers_of(phases: Sequence[Step], ops: tuple[Op, ...], body: tuple[Op, ...]) -> tuple[Span, ...]:
    """`phases` are executions in order of time. Those in the same trip of a loop over layers, and with the same place
    in their names (`_1_2` is place 2 of the pattern of run 1), are a layer.

    Layers do not overlap. Where phases of the next one come before the last of this one, the border is where least of
    their time is on the wrong side.
    """
    loops = _layer_loops(body)
    found: dict[object, list[Step]] = {}
    for phase in phases:
        place = _place(ops[phase.op])
        trips = tuple((counter, trip) for counter, trip in phase.trips[:1] if counter in loops)
        if trips or place:
            found.setdefault((trips, place), []).append(phase)
    layers = list(found.values())
    if not layers:
        return ()
    borders = [0.0]
    for this, following in pairwise(layers):
        borders.append(max(borders[-1], _border(this, following)))
    spans = []
    for number, (steps, border) in enumerate(zip(layers, borders, strict=True)):
        began = max(border, steps[0].began)
        ended = max(step.ended for step in steps)
        if number + 1 < len(layers):
            ended = min(ended, max(borders[number + 1], began))
        spans.append(Span(f"layer {number}", began, max(began, ended), steps[0].op))
    return tuple(spans)


def _border(this: Sequence[Step], following: Sequence[Step]) -> float:
    last = max(step.ended for step in this)
    if following[0].began >= last:
        return following[0].began

    def wrong(cut: float) -> float:
        late = sum(step.ended - step.began for step in this if step.began >= cut)
        return late + sum(step.ended - step.began for step in following if step.began < cut)

    return min((step.began for step in following), key=wrong)


def _layer_loops(body: tuple[Op, ...]) -> set[str]:
    """Counters of the loops with whole layers in them: no phase of the same place is outside, as of one of experts."""
    inside = {
        op.counter: [_place(o) for o in walk(op.body) if isinstance(o, Phase)] for op in body if isinstance(op, Loop)
    }
    places = Counter(_place(op) for op in walk(body) if isinstance(op, Phase))
    return {
        counter
        for counter, found in inside.items()
        if found and all(not place or places[place] == number for place, number in Counter(found).items())
    }


def _place(op: Op) -> str:
    assert isinstance(op, Phase)
    found = _PLACE.search(op.name)
    return found.group() if found else ""
