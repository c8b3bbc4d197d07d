"""A schedule whose phases copy out what they leave: the buffers of `Phase.values`, right behind what writes them.

Everything else stays as it is: the copies are made after the plan has its program, and each is waited for at once. They
read whole buffers, padding that nothing has written too, so the proof is asked about the schedule without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from schedc.compiler.shrink import Shrunk
from schedc.ir.expr import Compare, Const, Expr, add, mul
from schedc.ir.program import Array, Op, Region, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.graph import Declarations, Each, Phase, Segment, Site, StepGraph, phases_in
from schedc.lower.values import KEPT, Piece, Value
from schedc.schedule.assemble import Assembly
from schedc.schedule.build import Schedule
from schedc.schedule.products import with_products
from schedc.target.target import Target
from schedc.weights.layout import Members

OfCache = Literal["", "read", "behind"]

COPIED = SemaphoreRef("copied_out")


@dataclass(frozen=True)
class Recorded:
    """One value of one phase, in the order of execution inside its segment. `layers` has one a trip, none outside.

    `array` is int32[trips · members · rows, 128] a device; empty if what it stands for is written out anyway.
    `of_cache`: whether it is made of what its layer keeps of tokens, before that joins the stream ("read"), or behind
    that ("behind"; outside of the layers: behind all of them).
    """

    segment: int
    phase: str
    layers: tuple[int, ...]
    value: Value
    array: str = ""
    rows: int = 0
    of_cache: OfCache = ""

    @property
    def members(self) -> int:
        return 1 if self.value.members is None else self.value.members.count

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Recorded:
        value = dict(data["value"])
        for pieces in ("pieces", "divided_by"):
            value[pieces] = tuple(Piece(**piece) for piece in value[pieces])
        if value["members"] is not None:
            value["members"] = Members(**value["members"])
        return Recorded(**{**data, "layers": tuple(data["layers"]), "value": Value(**value)})


def phases_of(graph: StepGraph) -> Iterator[tuple[int, Phase]]:
    """Every phase with the number of its segment, those of members too, in the order of execution."""
    for number, segment in enumerate(graph.segments):
        for phase in segment.phases:
            yield from ((number, inner) for inner in phases_in(phase))


def recorded(graph: StepGraph, wanted: Collection[str]) -> tuple[Recorded, ...]:
    """What the `wanted` phases leave: an array for every buffer of a phase, whatever values it holds."""
    heights, found = {buffer.name: buffer.rows for buffer in graph.declarations.buffers}, list[Recorded]()
    arrays: dict[tuple[int, str, str], str] = {}
    reached: dict[tuple[int, tuple[int, ...]], OfCache] = {}
    for segment, phase in phases_of(graph):
        layer = segment, phase.layers
        if KEPT in phase.values:
            reached[layer] = "read"
        of_cache = reached.get(layer, "") if phase.layers or not reached else "behind"
        if any(value.meaning == "mixer.stream" for value in phase.values):
            reached[layer] = "behind"
        for value in phase.values if phase.name in wanted else ():
            if value.begins:
                continue
            one = Recorded(segment, phase.name, phase.layers, value, of_cache=of_cache)
            if value.buffer:
                array = arrays.setdefault((segment, phase.name, value.buffer), f"copy_{len(arrays)}")
                one = replace(one, array=array, rows=heights[value.buffer])
            found.append(one)
    return tuple(found)


def recording(small: Shrunk, target: Target, wanted: Collection[str]) -> tuple[Schedule, tuple[Recorded, ...]]:
    """The schedule with the copies of the `wanted` phases, and what they are copies of."""
    made = small.schedule
    records = recorded(made.graph, wanted)
    graph = _copying(made.graph, records)
    assembly = Assembly(graph, made.plan, made.program.name, made.program.attributes)
    return replace(made, graph=graph, program=with_products(assembly.program(), small.shape, target)), records


def _copying(graph: StepGraph, records: Collection[Recorded]) -> StepGraph:
    copied = [one for one in records if one.array]
    if not copied:
        return graph
    sizes = {one.array: graph.segments[one.segment].trips * one.members * one.rows for one in copied}
    own = Declarations(
        arrays=tuple(Array(name, rows, "output") for name, rows in sizes.items()),
        semaphores=(Semaphore(COPIED.name),),
    )

    def with_copies(number: int, phase: Phase) -> Phase:
        here = [one for one in copied if one.segment == number and _is_left_by(phase, one)]
        last = 0 if phase.stream is None else graph.grain.tiles(graph.stream(phase.stream)) - 1
        return replace(phase, ops=lambda site: (*phase.ops(site), *_copies(site, here, last))) if here else phase

    def of_segment(number: int, segment: Segment) -> Segment:
        phases = tuple(
            replace(phase, phases=tuple(with_copies(number, inner) for inner in phase.phases))
            if isinstance(phase, Each)
            else with_copies(number, phase)
            for phase in segment.phases
        )
        return replace(segment, phases=phases)

    segments = tuple(of_segment(number, segment) for number, segment in enumerate(graph.segments))
    return replace(graph, segments=segments, declarations=graph.declarations + own)


def _is_left_by(phase: Phase, one: Recorded) -> bool:
    """Also what it is before the first of the members that change it."""
    return (phase.name == one.phase and one.value in phase.values) or replace(one.value, begins=True) in phase.values


def _copies(site: Site, records: Collection[Recorded], last: int) -> tuple[Op, ...]:
    """Behind the last tile."""
    ops: list[Op] = []
    for one in {one.array: one for one in records}.values():
        place: Expr = mul(site.trip, one.members)
        if one.value.members is not None and site.member is not None:
            place = add(place, site.member)
        target = Region(one.array, one.rows, mul(place, one.rows))
        ops += [Start(Region(one.value.buffer, one.rows), target, COPIED), Wait(COPIED, one.rows)]
    return (When((Compare("==", site.tile, Const(last)),), tuple(ops)),) if last else tuple(ops)
