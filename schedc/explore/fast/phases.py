"""What every phase of a step graph does in each trip, for each chosen member and tile: its notes, without rings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from schedc.cost.inputs import Inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, Load
from schedc.cost.simulate import Run
from schedc.cost.timeline import PhaseTime
from schedc.explore.fast.edges import Edges, edges_of
from schedc.explore.fast.trace import Note, Recorder
from schedc.ir.expr import Const, Counter, Element, Expr, evaluate
from schedc.ir.program import Op, Program, Region, walk
from schedc.ir.program import Phase as PhaseOp
from schedc.lower.graph import Each, Phase, Segment, Site, StepGraph, VectorBlock, phases_in
from schedc.schedule.products import with_products
from schedc.target.target import Target


@dataclass(frozen=True)
class Done:
    """What one execution of a phase or of a prefetch does, and the core time after the last note."""

    notes: tuple[Note, ...]
    rest_ns: float


@dataclass(frozen=True)
class Recorded:
    """By (phase or prefetch, trip, member, tile) what it does; by (selection, trip), how many members are chosen."""

    done: Mapping[tuple[str, int, int, int], Done]
    chosen: Mapping[tuple[str, int], int]
    semaphores: int
    """Of the graph: notes number them from 0."""
    edges: Edges


def record_phases(
    graph: StepGraph,
    target: Target,
    machine: Machine,
    inputs: Inputs | None,
    most_trips: int,
    load: Load = DEFAULT_LOAD,
) -> Recorded:
    """Of the first `most_trips` trips of every segment, in the order of the graph."""
    declared, bodies = graph.declarations, dict(_bodies(graph))
    program = Program(
        graph.name, (), (), declared.arrays, declared.scalars, declared.semaphores,
        tuple(PhaseOp(name, ops) for name, ops in bodies.items()), devices=graph.shape.devices,
    )  # fmt: skip
    named = with_products(program, graph.shape, target)
    return _Phases(graph, Recorder(named, machine, inputs, load), most_trips).record()


def tile_counter(phase: Phase) -> str:
    return f"tile_{phase.name}"


def transfer(name: str) -> str:
    """What a prefetch is called beside the phases."""
    return f"transfer {name}"


def _bodies(graph: StepGraph) -> Iterator[tuple[str, tuple[Op, ...]]]:
    """At the counters of its trip, member and tile, the operations of every phase and prefetch."""
    for segment in graph.segments:
        trip: Expr = Counter(segment.counter) if segment.trips > 1 else Const(0)
        for phase in segment.phases:
            if isinstance(phase, Phase):
                yield phase.name, phase.ops(_site(graph, phase, Site(trip)))
                continue
            site = Site(trip, member=Element(phase.selection.ids, Counter(phase.counter)))
            for inner in phase.phases:
                yield inner.name, inner.ops(_site(graph, inner, site))
        for prefetch in segment.prefetches:
            yield transfer(prefetch.name), prefetch.ops(trip)


def _site(graph: StepGraph, phase: Phase, site: Site) -> Site:
    """Of what is streamed only the size matters here, not where it is."""
    vectors = graph.stream(phase.vectors) if phase.vectors else None
    if isinstance(vectors, VectorBlock):
        return replace(site, vectors=Region("", vectors.unit_rows), vector_block=vectors)
    if phase.stream is None:
        return site
    stream = graph.stream(phase.stream)
    tile: Expr = Counter(tile_counter(phase)) if graph.grain.tiles(stream) > 1 else Const(0)
    return replace(site, tile=tile, weight=Region("", graph.grain.tile_rows(stream)))


class _Phases:
    def __init__(self, graph: StepGraph, recorder: Recorder, most_trips: int) -> None:
        self.graph, self.recorder, self.most_trips = graph, recorder, most_trips
        self.bodies = {op.name: op.body for op in recorder.program.body if isinstance(op, PhaseOp)}
        self.first_operation: dict[str, int] = {}
        """By phase and prefetch: prices are by the number of the operation in the program."""
        for number, op in enumerate(walk(recorder.program.body)):
            if isinstance(op, PhaseOp):
                self.first_operation.setdefault(op.name, number + 1)
        self.done: dict[tuple[str, int, int, int], Done] = {}
        self.chosen: dict[tuple[str, int], int] = {}

    def record(self) -> Recorded:
        for segment in self.graph.segments:
            counters = {segment.counter: self._counter()}
            closures = dict(self._closures(segment, counters))
            for trip in range(min(segment.trips, self.most_trips)):
                self.recorder.counters[counters[segment.counter]] = trip
                for prefetch in segment.prefetches:
                    self._run(closures, transfer(prefetch.name), trip)
                for phase in segment.phases:
                    self._phase(phase, closures, counters, trip)
        semaphores = sum(s.count for s in self.recorder.program.semaphores)
        edges = edges_of(self.graph, self.bodies, self.recorder.program, self.recorder.machine)
        return Recorded(self.done, self.chosen, semaphores, edges)

    def _phase(
        self, phase: Phase | Each, closures: Mapping[str, list[Run]], counters: Mapping[str, int], trip: int
    ) -> None:
        if isinstance(phase, Phase):
            self._tiles(phase, closures, counters, trip, 0)
            return
        count = self.chosen[phase.name, trip] = self._count(phase)
        for member in range(count):
            self.recorder.counters[counters[phase.counter]] = member
            for inner in phase.phases:
                self._tiles(inner, closures, counters, trip, member)

    def _tiles(
        self, phase: Phase, closures: Mapping[str, list[Run]], counters: Mapping[str, int], trip: int, member: int
    ) -> None:
        tiles = self.graph.grain.tiles(self.graph.stream(phase.stream)) if phase.stream else 1
        for tile in range(tiles):
            self.recorder.counters[counters[tile_counter(phase)]] = tile
            self._run(closures, phase.name, trip, member, tile)

    def _run(self, closures: Mapping[str, list[Run]], name: str, trip: int, member: int = 0, tile: int = 0) -> None:
        for step in closures[name]:
            step()
        notes, rest = self.recorder.take()
        self.done[name, trip, member, tile] = Done(tuple(notes), rest)

    def _closures(self, segment: Segment, counters: dict[str, int]) -> Iterator[tuple[str, list[Run]]]:
        names = []
        for phase in segment.phases:
            if isinstance(phase, Each):
                counters[phase.counter] = self._counter()
            for part in phases_in(phase):
                counters[tile_counter(part)] = self._counter()
                names.append(part.name)
        for name in [*names, *(transfer(prefetch.name) for prefetch in segment.prefetches)]:
            self.recorder.compiled = self.first_operation[name]
            yield name, self.recorder.closures(self.bodies[name], dict(counters), PhaseTime(name))

    def _counter(self) -> int:
        self.recorder.counters.append(0)
        return len(self.recorder.counters) - 1

    def _count(self, each: Each) -> int:
        scalars, index = self.recorder.scalars, self.recorder.scalar_index
        count = Element(each.selection.count, Const(0))
        return evaluate(count, lambda name: 0, lambda array, at: scalars[index[array]][at])
