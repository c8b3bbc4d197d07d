"""From a step graph and a plan to a program: every start, wait and slot in its place."""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.expr import Const, Counter, Expr, add, mul
from schedc.ir.program import (
    Array,
    Attribute,
    Buffer,
    Loop,
    Op,
    Pool,
    Program,
    Region,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
    When,
)
from schedc.ir.program import Phase as PhaseOp
from schedc.lower.graph import Phase, Segment, Site, StepGraph, Stream, VectorBlock
from schedc.lower.parts import STREAM
from schedc.schedule.plan import Plan, Ring
from schedc.schedule.sequence import Affine, Lap, Sequence


@dataclass(frozen=True)
class RingState:
    ring: Ring
    slot_rows: int
    sequence: Sequence

    @property
    def buffer(self) -> str:
        return f"{self.ring.name}_slot"

    def semaphore(self, slot: Expr) -> SemaphoreRef:
        return SemaphoreRef(f"{self.ring.name}_arrived", slot)


class Assembly:
    def __init__(self, graph: StepGraph, plan: Plan, name: str, attributes: tuple[tuple[str, Attribute], ...]) -> None:
        self.graph, self.plan, self.name, self.attributes = graph, plan, name, attributes
        self.streams = {stream.name: stream for stream in graph.streams}
        self.rings = {ring.name: self._ring_state(ring) for ring in plan.rings}
        self.ring_of = {stream: self.rings[ring.name] for ring in plan.rings for stream in ring.streams}

    def _ring_state(self, ring: Ring) -> RingState:
        slot_rows = max(self.graph.grain.tile_rows(self.streams[name]) for name in ring.streams)
        laps = []
        for segment in self.graph.segments:
            used = tuple((name, self._tiles(name)) for name in _consumed(segment) if name in ring.streams)
            laps.append(Lap(segment.counter, segment.trips, used))
        return RingState(ring, slot_rows, Sequence(tuple(laps)))

    def _tiles(self, name: str) -> int:
        return self.graph.grain.tiles(self.streams[name])

    # The program

    def program(self) -> Program:
        declared = self.graph.declarations
        rings = self.rings.values()
        buffers = [Buffer(r.buffer, STREAM, r.slot_rows, r.ring.slots) for r in rings] + list(declared.buffers)
        semaphores = [Semaphore(f"{r.ring.name}_arrived", r.ring.slots) for r in rings] + list(declared.semaphores)
        arrays = [Array(s.name, self._layout(s).rows, "weight") for s in self.graph.streams] + list(declared.arrays)
        pools = [Pool(name) for name in dict.fromkeys(buffer.pool for buffer in buffers)]
        body = tuple(op for index in range(len(self.graph.segments)) for op in self._segment(index))
        prologue = PhaseOp("prologue", tuple(self._prologue()))
        return Program(
            self.name,
            tuple(pools),
            tuple(buffers),
            tuple(arrays),
            declared.scalars,
            tuple(semaphores),
            (prologue, *body) if prologue.body else body,
            devices=self.graph.shape.devices,
            attributes=self.attributes,
        )

    def layouts(self):
        """The layout of every weight array, in the order of the program's arrays."""
        return tuple(self._layout(stream) for stream in self.graph.streams) + self.graph.declarations.layouts

    def _layout(self, stream: Stream):
        return stream.layout(self.graph.grain.tile_units[stream.name])

    def _prologue(self):
        for state in self.rings.values():
            for number, stream, trip, tile in state.sequence.first(state.ring.ahead):
                yield self._start(state, stream, Const(trip), Const(tile), Const(number % state.ring.slots))

    def _segment(self, index: int) -> tuple[Op, ...]:
        segment = self.graph.segments[index]
        body = tuple(self._phase(index, segment, phase) for phase in segment.phases)
        return (Loop(segment.counter, Const(segment.trips), body),) if segment.trips > 1 else body

    def _phase(self, index: int, segment: Segment, phase: Phase) -> PhaseOp:
        ops: list[Op] = []
        trip: Expr = Counter(segment.counter) if segment.trips > 1 else Const(0)
        for prefetch in segment.prefetches:
            if self.plan.issue.get(prefetch.name, prefetch.latest) == phase.name:
                ops += prefetch.ops(trip)
        vectors = self.streams[phase.vectors] if phase.vectors else None
        site = Site(trip)
        if isinstance(vectors, VectorBlock):
            readers = [p.name for p in segment.phases if p.vectors == vectors.name]
            if phase.name == readers[0]:
                ops += self._arrive(index, vectors.name, Affine())
            region = self._slot(index, vectors.name, Affine())
            site = Site(trip, vectors=region, vector_block=vectors)
            ops += phase.ops(site)
            if phase.name == readers[-1]:
                ops += self._refill(index, vectors.name, Affine())
        elif phase.stream is None:
            ops += phase.ops(site)
        else:
            ops += self._tile_loop(index, phase, phase.stream, trip)
        return PhaseOp(phase.name, tuple(ops))

    def _tile_loop(self, index: int, phase: Phase, stream: str, trip: Expr) -> tuple[Op, ...]:
        tiles = self._tiles(stream)
        counter = Counter(f"tile_{phase.name}")
        tile = Affine(0, ((counter.name, 1, tiles),)) if tiles > 1 else Affine()
        site = Site(trip, tile.expr(), weight=self._slot(index, stream, tile))
        body = (*self._arrive(index, stream, tile), *phase.ops(site), *self._refill(index, stream, tile))
        return (Loop(counter.name, Const(tiles), body),) if tiles > 1 else body

    # Transfers of one ring

    def _slot(self, lap: int, stream: str, tile: Affine) -> Region:
        state = self.ring_of[stream]
        slot = state.sequence.number(lap, stream, tile).modulo(state.ring.slots)
        return Region(state.buffer, self.graph.grain.tile_rows(self.streams[stream]), slot=slot)

    def _arrive(self, lap: int, stream: str, tile: Affine) -> tuple[Op, ...]:
        """Wait for a tile; with nothing started ahead, start it first."""
        state = self.ring_of[stream]
        slot = state.sequence.number(lap, stream, tile).modulo(state.ring.slots)
        wait = Wait(state.semaphore(slot), self.graph.grain.tile_rows(self.streams[stream]))
        if state.ring.ahead:
            return (wait,)
        at = state.sequence.laps[lap]
        trip: Expr = Counter(at.counter) if at.trips > 1 else Const(0)
        return self._start(state, stream, trip, tile.expr(), slot), wait

    def _refill(self, lap: int, stream: str, tile: Affine) -> tuple[Op, ...]:
        """After a tile has been used: start the one that is `ahead` places further."""
        state = self.ring_of[stream]
        if not state.ring.ahead:
            return ()
        slot = state.sequence.number(lap, stream, tile).shifted(state.ring.ahead).modulo(state.ring.slots)
        ops: list[Op] = []
        for target in state.sequence.ahead(lap, stream, tile, state.ring.ahead):
            start = self._start(state, target.stream, target.trip, target.tile, slot)
            ops.append(When(target.conditions, (start,)) if target.conditions else start)
        return tuple(ops)

    def _start(self, state: RingState, stream: str, trip: Expr, tile: Expr, slot: Expr) -> Start:
        rows = self.graph.grain.tile_rows(self.streams[stream])
        per_trip = rows * self._tiles(stream) if self.streams[stream].units > 1 else rows
        offset = add(mul(trip, per_trip), mul(tile, rows))
        return Start(Region(stream, rows, offset), Region(state.buffer, rows, slot=slot), state.semaphore(slot))


def _consumed(segment: Segment) -> list[str]:
    """The streams of a segment in the order in which their use ends."""
    last: dict[str, int] = {}
    for place, phase in enumerate(segment.phases):
        for name in (phase.stream, phase.vectors):
            if name is not None:
                last[name] = place
    return sorted(last, key=lambda name: last[name])
