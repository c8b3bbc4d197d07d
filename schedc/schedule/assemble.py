"""From a step graph and a plan to a program: every start, wait and slot in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, floordiv, mul
from schedc.ir.program import Array, Attribute, Buffer, Loop, Op, Pool, Program, Semaphore, When
from schedc.ir.program import Phase as PhaseOp
from schedc.lower.graph import Each, Phase, Segment, Site, StepGraph, Stream, VectorBlock, consumed
from schedc.lower.parts import STREAM
from schedc.schedule.passage import Passage
from schedc.schedule.plan import Plan, Ring
from schedc.schedule.sequence import Affine, Lap, Sequence


class Assembly:
    """A step graph with the rings of a plan: which tiles pass through which slots, and the program that follows."""

    def __init__(self, graph: StepGraph, plan: Plan, name: str, attributes: tuple[tuple[str, Attribute], ...]) -> None:
        self.graph, self.plan, self.name, self.attributes = graph, plan, name, attributes
        self.streams = {stream.name: stream for stream in graph.streams}
        chosen = {name for segment in graph.segments for each in segment.selections() for name in consumed(each.phases)}
        self.passages = [self._whole_step(r) for r in plan.rings if not chosen.intersection(r.streams)]
        self.passage_of = {stream: passage for passage in self.passages for stream in passage.ring.streams}
        for segment in graph.segments:
            for each in segment.selections():
                for passage in self._members(segment, each):
                    self.passage_of |= dict.fromkeys(_streams(passage), passage)

    def _whole_step(self, ring: Ring) -> Passage:
        """A ring through which tiles pass from the first phase to the last."""
        laps = []
        for segment in self.graph.segments:
            used = tuple((name, self._tiles(name)) for name in segment.consumed() if name in ring.streams)
            laps.append(Lap(segment.counter, segment.trips, used))
        return Passage(ring, Sequence(tuple(laps)), self.streams, self.graph.grain)

    def _members(self, segment: Segment, each: Each) -> Iterator[Passage]:
        """Rings through which the tiles of the chosen members pass, and which are empty before and after."""
        selection = each.selection

        def matrix(member: Expr) -> Expr:
            return add(mul(_trip(segment), selection.members), Element(selection.ids, member))

        for ring in self.plan.rings:
            used = tuple((name, self._tiles(name)) for name in consumed(each.phases) if name in ring.streams)
            if used:
                lap = replace(self._lap(each), streams=used)
                yield Passage(ring, Sequence((lap,)), self.streams, self.graph.grain, matrix)

    def _lap(self, each: Each) -> Lap:
        """The loop over the chosen members, some of them at once."""
        at_once = min(self.plan.at_once.get(each.name, 1), each.selection.most)
        return Lap(each.counter, each.selection.most, (), Element(each.selection.count, Const(0)), at_once)

    def _tiles(self, name: str) -> int:
        return self.graph.grain.tiles(self.streams[name])

    # The program

    def program(self) -> Program:
        """Without addresses, and without the products of its dots (`products.py`)."""
        declared = self.graph.declarations
        buffers = [self._ring_buffer(ring) for ring in self.plan.rings] + list(declared.buffers)
        semaphores = [Semaphore(f"{ring.name}_arrived", ring.slots) for ring in self.plan.rings]
        semaphores += declared.semaphores
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

    def _ring_buffer(self, ring: Ring) -> Buffer:
        rows = max(self.graph.grain.tile_rows(self.streams[name]) for name in ring.streams)
        return Buffer(f"{ring.name}_slot", STREAM, rows, ring.slots)

    def _prologue(self) -> Iterator[Op]:
        for passage in self.passages:
            if passage.ring.begin is None:
                yield from passage.begin()

    def _segment(self, index: int) -> tuple[Op, ...]:
        segment = self.graph.segments[index]
        body: list[Op] = []
        for phase in segment.phases:
            early = self._early(index, phase.name)
            if isinstance(phase, Each):
                body += [PhaseOp(phase.name, early)] if early else []
                body.append(self._each(segment, phase))
            else:
                site = Site(_trip(segment))
                own = tuple(p for p in segment.phases if isinstance(p, Phase))
                body.append(PhaseOp(phase.name, (*early, *self._ops(index, phase, own, site))))
        return (Loop(segment.counter, Const(segment.trips), tuple(body)),) if segment.trips > 1 else tuple(body)

    def _early(self, index: int, phase: str) -> tuple[Op, ...]:
        """What is issued at the start of a phase, beside what it streams: the first tiles of rings, prefetches, the
        first tiles of chosen members, and what earlier phases have left to it."""
        segment, ops = self.graph.segments[index], list[Op]()
        for passage in self.passages:
            if passage.ring.begin == phase:
                ops += self._first_tiles(index, passage)
        for prefetch in segment.prefetches:
            if self.plan.issue.get(prefetch.name, prefetch.latest) == phase:
                ops += prefetch.ops(_trip(segment))
        for each in segment.selections():
            if self.plan.issue.get(each.name, each.name) == phase:
                for passage in dict.fromkeys(self.passage_of[name] for name in consumed(each.phases)):
                    ops += passage.begin()
        for earlier in segment.phases:
            if self.plan.deferred.get(earlier.name) == phase and isinstance(earlier, Phase):
                ops += self._deferred(index, earlier)
        return tuple(ops)

    def _first_tiles(self, index: int, passage: Passage) -> tuple[Op, ...]:
        """Of a ring that begins in this segment: in its first trip if it uses the ring, else in its last."""
        segment, starts = self.graph.segments[index], tuple(passage.begin())
        if segment.trips == 1 or not starts:
            return starts
        trip = 0 if passage.sequence.laps[index].streams else segment.trips - 1
        return (When((Compare("==", Counter(segment.counter), Const(trip)),), starts),)

    def _deferred(self, lap: int, phase: Phase) -> tuple[Op, ...]:
        """What a phase would have started as its tiles have been used."""
        stream = phase.vectors or phase.stream
        if stream is None:
            return ()
        passage, tiles = self.passage_of[stream], self._tiles(stream)
        counter = Counter(f"deferred_{phase.name}")
        tile = Affine(0, ((counter.name, 1, tiles),)) if tiles > 1 else Affine()
        refill = passage.refill(lap, stream, tile)
        return (Loop(counter.name, Const(tiles), refill),) if tiles > 1 and refill else refill

    def _each(self, segment: Segment, each: Each) -> Loop:
        lap, count = self._lap(each), Element(each.selection.count, Const(0))
        member: Expr = Counter(each.counter) if lap.at_once == 1 else lap.trip.expr()
        site = Site(_trip(segment), member=Element(each.selection.ids, member))
        body: tuple[Op, ...] = tuple(PhaseOp(p.name, self._ops(0, p, each.phases, site)) for p in each.phases)
        if lap.at_once == 1:
            return Loop(each.counter, count, body)
        inner = Loop(lap.inner, Const(lap.at_once), (When((Compare("<", member, count),), body),), unroll=True)
        return Loop(each.counter, floordiv(add(count, lap.at_once - 1), lap.at_once), (inner,))

    def _ops(self, lap: int, phase: Phase, around: tuple[Phase, ...], site: Site) -> tuple[Op, ...]:
        """A phase with the waits and refills of what it streams; `around`: the phases that share its vectors."""
        ops: list[Op] = []
        vectors = self.streams[phase.vectors] if phase.vectors else None
        if isinstance(vectors, VectorBlock):
            passage = self.passage_of[vectors.name]
            readers = [p.name for p in around if p.vectors == vectors.name]
            if phase.name == readers[0]:
                ops += passage.arrive(lap, vectors.name, Affine())
            region = passage.slot(lap, vectors.name, Affine())
            ops += phase.ops(replace(site, vectors=region, vector_block=vectors))
            if phase.name == readers[-1] and phase.name not in self.plan.deferred:
                ops += passage.refill(lap, vectors.name, Affine())
        elif phase.stream is None:
            ops += phase.ops(site)
        else:
            ops += self._tile_loop(lap, phase, phase.stream, site)
        return tuple(ops)

    def _tile_loop(self, lap: int, phase: Phase, stream: str, site: Site) -> tuple[Op, ...]:
        passage, tiles = self.passage_of[stream], self._tiles(stream)
        counter = Counter(f"tile_{phase.name}")
        tile = Affine(0, ((counter.name, 1, tiles),)) if tiles > 1 else Affine()
        ops = phase.ops(replace(site, tile=tile.expr(), weight=passage.slot(lap, stream, tile)))
        refill = () if phase.name in self.plan.deferred else passage.refill(lap, stream, tile)
        body = (*passage.arrive(lap, stream, tile), *ops, *refill)
        return (Loop(counter.name, Const(tiles), body),) if tiles > 1 else body


def _trip(segment: Segment) -> Expr:
    return Counter(segment.counter) if segment.trips > 1 else Const(0)


def _streams(passage: Passage) -> list[str]:
    return [name for lap in passage.sequence.laps for name, _ in lap.streams]
