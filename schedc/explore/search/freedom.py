"""What may be changed about an ordering, as arrays: which phases must stay behind which, and which belong together.

Layers of one kind stand several times in a program. What is called alike in them (`up_1_0`, `up_1_3`) is a *group*, and
a change of a group is made in all layers at once: far fewer choices, and most of the gain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schedc.explore.fast.model import Model
from schedc.schedule.depends import dependences, issue_of
from schedc.schedule.plan import Plan, Problem

_LAYERED = re.compile(r"(.+)_(\d+_\d+)")
"""A name of the lowering: what it is, run and place in the run's pattern."""


class Freedom(NamedTuple):
    """Numbers of units and transfers as in `model.Arrays`; an edge is a row (before, behind)."""

    edges: np.ndarray
    """Units that must stand before units."""
    issued_after: np.ndarray
    """(unit, transfer): issued at the start of a later unit than that."""
    issued_by: np.ndarray
    """(transfer, unit): issued at the start of that unit at the latest."""
    kept_behind: np.ndarray
    """(unit, unit): the second stands right behind the first."""
    segment: np.ndarray
    """By unit."""
    group: np.ndarray
    """By unit: what it is called alike in other layers."""
    layer: np.ndarray
    """By unit: a number for its run and place in the pattern."""
    unit_at: np.ndarray
    """[group, layer] → unit, or -1."""
    transfer_group: np.ndarray
    """By transfer."""
    transfer_layer: np.ndarray
    """By transfer."""
    streams: np.ndarray
    """By unit: the stream it uses outside selections, or -1."""
    ring_rows: np.ndarray
    """By ring, rows of VMEM a slot takes."""


def freedom_of(model: Model, problem: Problem, plan: Plan) -> Freedom:
    """Of the model of a plan's grain."""
    units = {name: index for index, name in enumerate(model.units)}
    segment = np.repeat(np.arange(len(model.arrays.trips)), np.diff(model.arrays.unit_first))
    edges, after, by = list[tuple[int, int]](), list[tuple[int, int]](), list[tuple[int, int]]()
    known = {phase.name for segment in problem.segments for phase in segment.phases}
    there = {phase.name for segment in model.graph.segments for phase in segment.phases}
    own = {} if there <= known else dependences(model.graph)
    for graph in (*problem.depends.values(), *own.values()):
        transfers = {issue_of(transfer): index for index, transfer in enumerate(model.transfers)}
        for before, behind in graph.edges:
            if before in units and behind in units:
                edges.append((units[before], units[behind]))
            elif before in units and behind in transfers:
                after.append((units[before], transfers[behind]))
            elif before in transfers and behind in units:
                by.append((transfers[before], units[behind]))
    group, layer = _numbered(model.units)
    transfer_group, _ = _numbered(model.transfers)
    latest = {prefetch.name: units[prefetch.latest] for prefetch in problem.prefetches}
    unit_at = np.full((group.max() + 1, layer.max() + 1), -1, np.int64)
    unit_at[group, layer] = np.arange(len(group))
    arrays = model.arrays
    firsts = arrays.part_first[:-1]
    streams = np.where(arrays.members[:, 0] < 0, np.maximum(arrays.stream[firsts], arrays.vectors[firsts]), -1)
    rows = {name: int(arrays.rows[index]) for index, name in enumerate(model.streams)}
    return Freedom(
        _pairs(edges),
        _pairs(after),
        _pairs(by),
        _pairs(_kept_behind(model, known, units)),
        segment.astype(np.int64),
        group,
        layer,
        unit_at,
        transfer_group,
        np.array([layer[latest[name]] for name in model.transfers], np.int64),
        streams.astype(np.int64),
        np.array([max(rows[name] for name in ring.streams) for ring in plan.rings], np.int64),
    )


def _pairs(pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def _kept_behind(model: Model, known: set[str], units: dict[str, int]) -> list[tuple[int, int]]:
    """Phases that only some plans have stay behind the one they are lowered behind: a plan cannot name them."""
    return [
        (units[before.name], units[phase.name])
        for segment in model.graph.segments
        for before, phase in zip(segment.phases, segment.phases[1:], strict=False)
        if phase.name not in known
    ]


def _numbered(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """By name, a number for what it is and one for its layer."""
    kinds, layers = dict[str, int](), dict[str, int]()
    found = []
    for name in names:
        match = _LAYERED.fullmatch(name)
        kind, layer = match.groups() if match else (name, "")
        found.append((kinds.setdefault(kind, len(kinds)), layers.setdefault(layer, len(layers))))
    return np.array([kind for kind, _ in found], np.int64), np.array([layer for _, layer in found], np.int64)
