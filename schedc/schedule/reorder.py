"""A step graph with the phases of its segments in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from schedc.lower.graph import Segment, StepGraph


def reordered(graph: StepGraph, order: Mapping[str, Sequence[str]]) -> StepGraph:
    """`order`: segment → its phases. One that is not named, such as the sending of a sum that is sent whole, stays
    right behind the one it is lowered behind."""
    if not order:
        return graph
    segments = tuple(
        _reordered(segment, order[segment.name]) if segment.name in order else segment for segment in graph.segments
    )
    return replace(graph, segments=segments)


def _reordered(segment: Segment, order: Sequence[str]) -> Segment:
    place = {name: index for index, name in enumerate(order)}
    keys, last = {}, -1
    for phase in segment.phases:
        last = place.get(phase.name, last)
        keys[phase.name] = last
    return replace(segment, phases=tuple(sorted(segment.phases, key=lambda phase: keys[phase.name])))
