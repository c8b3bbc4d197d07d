"""The whole decode step of a model: embedding, the layers, the head and the arg-max."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from schedc.errors import SpecError, UserError
from schedc.ir.expr import Element, Expr, mul
from schedc.ir.program import (
    Array,
    Attribute,
    Barrier,
    Buffer,
    Op,
    Region,
    Scalars,
    Semaphore,
    SemaphoreRef,
    Start,
    Wait,
    When,
)
from schedc.lower.block import BlockLowering
from schedc.lower.caches.paged import page_table
from schedc.lower.caches.ring import ring_problems
from schedc.lower.collectives.communication import SumSite
from schedc.lower.collectives.sums import LoopCuts, Sums
from schedc.lower.graph import (
    LANES,
    Declarations,
    Grain,
    Phase,
    Segment,
    Site,
    StepGraph,
    StepShape,
    Stream,
    VectorBlock,
    round_up,
)
from schedc.lower.head import HeadLowering
from schedc.lower.longrope import longrope_problems
from schedc.lower.norms import norm_items, norm_kind, norm_vectors
from schedc.lower.parts import STREAM, WORK, Place, compute, each_row
from schedc.lower.residuals.registry import lower_residual
from schedc.lower.residuals.stream import residual_rows
from schedc.lower.rows import count_rows, is_active, position_of, row_scalars
from schedc.lower.sites import site_problems, sum_sites
from schedc.lower.taps import TapLowering, tap_problems
from schedc.lower.unsupported import unsupported
from schedc.lower.values import panels
from schedc.placement.caches import devices_in_turn
from schedc.placement.check import problems as placement_problems
from schedc.spec.mixers import Mixer
from schedc.spec.model import ModelSpec
from schedc.weights.layout import RopeTable, RowTable, WordDtype


class StepLowering:
    """The parts of one model at one step shape; `graph(grain)` gives the step graph once the grain is chosen."""

    def __init__(self, spec: ModelSpec, shape: StepShape) -> None:
        refuse_what_is_not_lowered(spec, shape)
        self.spec, self.shape = spec, shape
        self.dtype = spec.quantization.operand_dtype
        self.residual, self.taps = lower_residual(spec, shape), TapLowering(spec, shape)
        self.rope_tables = rope_tables(spec, shape)
        self.blocks: list[list[BlockLowering]] = []
        single = len(spec.layers) == 1 and len(spec.layers[0].pattern) == 1
        first = 0
        for run_index, run in enumerate(spec.layers):
            period = len(run.pattern)
            row = []
            for index, block in enumerate(run.pattern):
                layers = tuple(range(first + index, first + run.repeat * period, period))
                place = Place("" if single else f"_{run_index}_{index}", run_counter(run_index), layers)
                row.append(BlockLowering(block, spec, shape, place, self._rope_row(block.mixer), self.residual))
            self.blocks.append(row)
            first += run.repeat * period
        items = norm_items(spec.embedding.norm, "embedding_norm", spec)
        self.embedding_vectors = VectorBlock("embedding_vectors", items) if items else None
        self.head = HeadLowering(spec, shape, self.residual)
        self.embedding = RowTable("embedding", spec.quantization.embedding_dtype, spec.vocab, spec.hidden)
        talk = shape.communication
        problems = list(site_problems(self.sum_sites(), talk.collectives, talk.wires))
        if problems:
            raise UserError("\n".join([f"{spec.name} on {shape.devices} devices:", *(f"  {p}" for p in problems)]))

    def sum_sites(self) -> dict[SumSite, tuple[str, ...]]:
        """Where its devices sum what each has a part of → the algorithms that can do it."""
        return sum_sites((block for run in self.blocks for block in run), self.shape)

    def at_sites(self, collectives: Mapping[str, str], wires: Mapping[str, WordDtype]) -> StepLowering:
        """The same step with other collectives and wires at these sites."""
        if not collectives and not wires:
            return self
        talk = self.shape.communication.at_sites(collectives, wires)
        return StepLowering(self.spec, replace(self.shape, communication=talk))

    def streams(self) -> tuple[Stream, ...]:
        """What the rings bring: vectors and matrices of the embedding, of every place of a pattern, and of the head."""
        layers = [stream for run in self.blocks for block in run for stream in block.streams()]
        first = () if self.embedding_vectors is None else (self.embedding_vectors,)
        return (*first, *layers, *self.head.streams())

    def graph(self, grain: Grain) -> StepGraph:
        """The phases and storage of the whole step, with streams and caches in tiles of this grain."""
        declarations = self._declarations() + self.residual.declarations() + self.taps.declarations()
        declarations += self.head.declarations(grain)
        for run in self.blocks:
            for block in run:
                declarations += block.declarations(grain)
        cuts = [[block.cuts(grain) for block in run] for run in self.blocks]
        loops = tuple(
            LoopCuts(run.repeat, tuple(cut for block in in_run for cut in block))
            for run, in_run in zip(self.spec.layers, cuts, strict=True)
        )
        sums = Sums(loops, self.shape.devices, self.shape.communication.topology)
        declarations += sums.declarations()
        segments = [Segment("begin", "", 1, self._begin(grain, declarations.once().cleared))]
        for index, run in enumerate(self.blocks):
            left = iter(sums.of_loop(index))
            phases = tuple(
                phase
                for block, of_block in zip(run, cuts[index], strict=True)
                for phase in (*block.phases(grain, [next(left) for _ in of_block]), *self.taps.after(block.place))
            )
            prefetches = tuple(prefetch for block in run for prefetch in block.prefetches(grain))
            trips = self.spec.layers[index].repeat
            segments.append(Segment(f"layers_{index}", run_counter(index), trips, phases, prefetches))
        segments.append(Segment("finish", "", 1, (*self.head.phases(grain), *self.taps.settle())))
        return StepGraph(self.spec.name, self.shape, grain, self.streams(), tuple(segments), declarations.once())

    # Storage

    def _declarations(self) -> Declarations:
        rows, shape = self.shape.padded_rows, self.shape
        buffers = [
            Buffer("token_row", STREAM, round_up(rows * self.embedding.entry_rows, 8)),
            Buffer("x", WORK, residual_rows(self.spec, shape)),
        ]
        arrays = [Array("embedding", self.embedding.rows, "weight")]
        semaphores = [Semaphore("token_arrived", shape.rows)]
        for table in self.rope_tables.values():
            buffers.append(Buffer(f"{table.name}_row", STREAM, rows * table.position_rows))
            arrays.append(Array(table.name, table.rows, "weight"))
            semaphores.append(Semaphore(f"{table.name}_arrived", shape.rows))
        return Declarations(
            tuple(buffers),
            tuple(arrays),
            (*row_scalars(shape, self.spec.vocab), *self._pages()),
            tuple(semaphores),
            (self.embedding, *self.rope_tables.values()),
        )

    def _pages(self) -> tuple[Scalars, ...]:
        tokens = self.spec.kv.page_tokens
        if tokens is None:
            return ()
        shape, sharing = self.shape, devices_in_turn(self.spec, self.shape.devices, self.shape.placement)
        return (page_table(shape.sequences, shape.sequence_pages(tokens, sharing), shape.page_count(tokens, sharing)),)

    def _rope_row(self, mixer: Mixer) -> Region | None:
        if not mixer.rotary_dim:
            return None
        table = self.rope_tables[rope_key(mixer)]
        return Region(f"{table.name}_row", self.shape.padded_rows * table.position_rows)

    # Before and after the layers

    def _begin(self, grain: Grain, cleared: tuple[Region, ...]) -> tuple[Phase, ...]:
        rows, entry = self.shape.rows, self.embedding.entry_rows

        def fetched(row: Expr) -> tuple[Op, ...]:
            starts: list[Op] = [
                Start(
                    Region("embedding", entry, mul(Element("token", row), entry)),
                    Region("token_row", entry, mul(row, entry)),
                    SemaphoreRef("token_arrived", row),
                )
            ]
            for table in self.rope_tables.values():
                size = table.position_rows
                starts.append(
                    Start(
                        Region(table.name, size, mul(position_of(self.shape, row), size)),
                        Region(f"{table.name}_row", size, mul(row, size)),
                        SemaphoreRef(f"{table.name}_arrived", row),
                    )
                )
            return (When((is_active(row),), tuple(starts)),)

        def arrived(row: Expr) -> tuple[Op, ...]:
            waits: list[Op] = [Wait(SemaphoreRef("token_arrived", row), entry)]
            waits += [Wait(SemaphoreRef(f"{t.name}_arrived", row), t.position_rows) for t in self.rope_tables.values()]
            return (When((is_active(row),), tuple(waits)),)

        def fetch(site: Site) -> tuple[Op, ...]:
            declared = [buffer for buffer in self._declarations().buffers if buffer.name.endswith("_row")]
            rows_of = (*(Region(buffer.name, buffer.rows) for buffer in declared), *cleared)
            clear = [compute("zero", writes={"out": region}) for region in rows_of]
            begin = [op for run in self.blocks for block in run for op in block.begin(grain)]
            return (*clear, *each_row(rows, fetched), *count_rows(self.shape), *begin, *self.residual.begin())

        def embed(site: Site) -> tuple[Op, ...]:
            padded = self.shape.padded_rows
            return (
                *each_row(rows, arrived),
                compute(
                    "embed",
                    reads={"words": Region("token_row", round_up(padded * entry, 8))},
                    writes={"out": Region("x", residual_rows(self.spec, self.shape))},
                    rows=padded,
                    panels=self.embedding.panels,
                    dtype=self.embedding.dtype,
                    multiplier=self.spec.embedding.multiplier,
                ),
                *self._embedding_norm(site),
            )

        meet = Phase("meet", lambda site: (Barrier(),))
        vectors = None if self.embedding_vectors is None else self.embedding_vectors.name
        value = panels("embedded", "x", self.spec.hidden, self.shape.padded_rows)
        embedded = Phase("embed", embed, vectors=vectors, values=(value,))
        return (Phase("fetch", fetch), *((meet,) if self.shape.devices > 1 else ()), embedded)

    def _embedding_norm(self, site: Site) -> tuple[Op, ...]:
        norm = self.spec.embedding.norm
        if norm is None:
            return ()
        x = Region("x", residual_rows(self.spec, self.shape))
        shape: dict[str, Attribute] = {"rows": self.shape.padded_rows, "columns": self.spec.hidden}
        reads = norm_vectors(norm, site, "embedding_norm")
        return (
            compute("norm_in_place", reads, updates={"x": x}, attributes=shape, eps=norm.eps, kind=norm_kind(norm)),
        )


def run_counter(run: int) -> str:
    """The counter of the loop over the layers of a run."""
    return "layer" if run == 0 else f"layer_{run}"


def rope_key(mixer: Mixer) -> tuple:
    """Mixers of one key share a table."""
    return mixer.rope, mixer.rope_width


def rope_tables(spec: ModelSpec, shape: StepShape) -> dict[tuple, RopeTable]:
    """One table for every distinct rotation of the model."""
    tables: dict[tuple, RopeTable] = {}
    for at in spec.iter_layers():
        mixer = at.block.mixer
        if mixer.rotary_dim and rope_key(mixer) not in tables:
            name = f"rope_{len(tables)}" if tables else "rope"
            lanes = round_up(mixer.rope_width, LANES)
            assert mixer.rope is not None
            tables[rope_key(mixer)] = RopeTable(name, shape.context, mixer.rotary_dim, lanes, mixer.rope)
    return tables


def refuse_what_is_not_lowered(spec: ModelSpec, shape: StepShape) -> None:
    """Raises SpecError naming everything the kernels cannot express yet, and sizes that are out of range."""
    problems = [*unsupported(spec, shape.devices), *placement_problems(spec, shape.devices, shape.placement)]
    if not 1 <= shape.rows <= 16:
        problems.append(f"rows: {shape.rows} is not between 1 and 16")
    page = spec.kv.page_tokens
    if page is not None and page < shape.sequence_rows:
        problems.append(
            f"kv.page_tokens: {shape.rows} tokens of one sequence can be in more than two pages of {page}; make pages "
            f"of {shape.rows} tokens or more, or give at most {page} rows"
        )
    if not 1 <= shape.context <= spec.max_position:
        problems.append(f"context: {shape.context} is not between 1 and max_position {spec.max_position}")
    problems += tap_problems(spec, shape.taps)
    problems += longrope_problems(spec, shape.context)
    problems += ring_problems(spec, shape)
    if problems:
        raise SpecError(spec.name, problems)
