"""The whole decode step of a model: embedding, the layers, the head and the arg-max."""

from __future__ import annotations

from schedc.errors import SpecError
from schedc.ir.expr import Compare, Const, Element, Expr, mod, mul
from schedc.ir.program import Array, Buffer, Op, Region, Scalars, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.block import BlockLowering, norm_items, normalise, residual_rows
from schedc.lower.caches.stream import is_active
from schedc.lower.graph import (
    LANES,
    Declarations,
    Grain,
    Matrix,
    Phase,
    Segment,
    Site,
    StepGraph,
    StepShape,
    Stream,
    VectorBlock,
    ceil_div,
    round_up,
)
from schedc.lower.parts import STREAM, WORK, Place, compute, each_row, operand_words
from schedc.lower.unsupported import unsupported
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, RopeTable, RowTable


class StepLowering:
    """The parts of one model at one step shape; `graph(grain)` gives the step graph once the grain is chosen."""

    def __init__(self, spec: ModelSpec, shape: StepShape) -> None:
        refuse_what_is_not_lowered(spec, shape)
        self.spec, self.shape = spec, shape
        self.dtype = spec.quantization.weights
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
                row.append(BlockLowering(block, spec, shape, place, self._rope_row(block.mixer)))
            self.blocks.append(row)
            first += run.repeat * period
        weight = "embed" if spec.embedding.tied else "head"
        self.head = Matrix("w_head", self.dtype, spec.hidden, (Columns(weight, 0, spec.vocab),))
        self.final = VectorBlock("final_vectors", norm_items(spec.final_norm, "final_norm", spec))
        self.embedding = RowTable("embedding", self.dtype, spec.vocab, spec.hidden)

    def streams(self) -> tuple[Stream, ...]:
        layers = [stream for run in self.blocks for block in run for stream in block.streams()]
        return (*layers, self.final, self.head)

    def graph(self, grain: Grain) -> StepGraph:
        declarations = self._declarations(grain)
        for run in self.blocks:
            for block in run:
                declarations += block.declarations(grain)
        segments = [Segment("begin", "", 1, self._begin(grain))]
        for index, run in enumerate(self.blocks):
            phases = tuple(phase for block in run for phase in block.phases(grain))
            prefetches = tuple(prefetch for block in run for prefetch in block.prefetches(grain))
            trips = self.spec.layers[index].repeat
            segments.append(Segment(f"layers_{index}", run_counter(index), trips, phases, prefetches))
        segments.append(Segment("finish", "", 1, self._finish(grain)))
        return StepGraph(self.spec.name, self.shape, grain, self.streams(), tuple(segments), declarations)

    # Storage

    def _declarations(self, grain: Grain) -> Declarations:
        rows, shape = self.shape.padded_rows, self.shape
        panels = grain.tile_units[self.head.name]
        logits = panels * rows
        buffers = [
            Buffer("token_row", STREAM, round_up(rows * self.embedding.entry_rows, 8)),
            Buffer("x", WORK, residual_rows(self.spec, shape)),
            Buffer("head_in", WORK, ceil_div(self.spec.hidden, LANES) * operand_words(rows, self.dtype)),
            Buffer("best", WORK, 2 * rows),
            Buffer("ids_out", WORK, rows),
        ]
        arrays = [Array("embedding", self.embedding.rows, "weight"), Array("ids", rows, "output")]
        semaphores = [Semaphore("token_arrived", shape.rows), Semaphore("ids_written")]
        for table in self.rope_tables.values():
            buffers.append(Buffer(f"{table.name}_row", STREAM, rows * table.position_rows))
            arrays.append(Array(table.name, table.rows, "weight"))
            semaphores.append(Semaphore(f"{table.name}_arrived", shape.rows))
        if shape.logits:
            buffers.append(Buffer("logits_tile", WORK, logits, slots=2))
            arrays.append(Array("logits", grain.tiles(self.head) * logits, "output"))
            semaphores.append(Semaphore("logits_written", 2))
        return Declarations(
            tuple(buffers),
            tuple(arrays),
            (
                Scalars("token", shape.rows, 0, self.spec.vocab - 1, "input"),
                Scalars("position", shape.rows, 0, shape.context - 1, "input"),
                Scalars("active", shape.rows, 0, 1, "input"),
            ),
            tuple(semaphores),
            (self.embedding, *self.rope_tables.values()),
        )

    def _rope_row(self, mixer: Gqa) -> Region | None:
        if not mixer.rotary_dim:
            return None
        table = self.rope_tables[rope_key(mixer)]
        return Region(f"{table.name}_row", self.shape.padded_rows * table.position_rows)

    # Before and after the layers

    def _begin(self, grain: Grain) -> tuple[Phase, ...]:
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
                        Region(table.name, size, mul(Element("position", row), size)),
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
            declared = [buffer for buffer in self._declarations(grain).buffers if buffer.name.endswith("_row")]
            clear = [compute("zero", writes={"out": Region(buffer.name, buffer.rows)}) for buffer in declared]
            begin = [op for run in self.blocks for block in run for op in block.begin(grain)]
            return (*clear, *each_row(rows, fetched), *begin)

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
                    dtype=self.dtype,
                    multiplier=self.spec.embedding.multiplier,
                ),
            )

        return Phase("fetch", fetch), Phase("embed", embed)

    def _finish(self, grain: Grain) -> tuple[Phase, ...]:
        spec, rows = self.spec, self.shape.padded_rows
        panels = grain.tile_units[self.head.name]
        head_in = Region("head_in", ceil_div(spec.hidden, LANES) * operand_words(rows, self.dtype))
        best = Region("best", 2 * rows)

        def norm(site: Site) -> tuple[Op, ...]:
            x = Region("x", residual_rows(spec, self.shape))
            return (
                normalise(spec.final_norm, x, head_in, site, "final_norm", spec, self.shape),
                compute("head_start", writes={"best": best}, rows=rows),
            )

        def head(site: Site) -> tuple[Op, ...]:
            return logits_out(site) if self.shape.logits else (fold(site, None),)

        def fold(site: Site, logits: Region | None) -> Op:
            return compute(
                "head",
                reads={"x": head_in, "w": site.weight},
                writes={"logits": logits},
                updates={"best": best},
                scalars={"tile": site.tile},
                rows=rows,
                depth=spec.hidden,
                panels=panels,
                vocab=spec.vocab,
                dtype=self.dtype,
                multiplier=spec.head.multiplier,
                soft_cap=spec.head.soft_cap or 0.0,
            )

        def logits_out(site: Site) -> tuple[Op, ...]:
            return logits_tile(site, panels * rows, grain.tiles(self.head), fold)

        def finish(site: Site) -> tuple[Op, ...]:
            active = [Element("active", Const(row)) for row in range(self.shape.rows)]
            ids = Region("ids_out", rows)
            done = SemaphoreRef("ids_written")
            settle = logits_settle(panels * rows, grain.tiles(self.head)) if self.shape.logits else ()
            return (
                compute(
                    "head_finish",
                    {"best": best},
                    {"out": ids},
                    scalars={"active": active},
                    rows=rows,
                    sequences=self.shape.rows,
                ),
                Start(ids, Region("ids", rows), done),
                *settle,
                Wait(done, rows),
            )

        return (
            Phase("final_norm", norm, vectors=self.final.name),
            Phase("head", head, stream=self.head.name),
            Phase("finish", finish),
        )


def logits_tile(site: Site, size: int, tiles: int, fold) -> tuple[Op, ...]:
    """Compute one tile of logits and write it out from one of two buffers."""
    slot = mod(site.tile, 2)
    out = Region("logits_tile", size, slot=slot)
    semaphore = SemaphoreRef("logits_written", slot)
    free = When((Compare(">=", site.tile, Const(2)),), (Wait(semaphore, size),))
    return (
        *((free,) if tiles > 2 else ()),
        fold(site, out),
        Start(out, Region("logits", size, mul(site.tile, size)), semaphore),
    )


def logits_settle(size: int, tiles: int) -> tuple[Op, ...]:
    return tuple(
        Wait(SemaphoreRef("logits_written", Const(tile % 2)), size) for tile in range(max(0, tiles - 2), tiles)
    )


def run_counter(run: int) -> str:
    return "layer" if run == 0 else f"layer_{run}"


def rope_key(mixer: Gqa) -> tuple:
    return mixer.rope, mixer.head_dim


def rope_tables(spec: ModelSpec, shape: StepShape) -> dict[tuple, RopeTable]:
    """One table for every distinct rotation of the model."""
    tables: dict[tuple, RopeTable] = {}
    for at in spec.iter_layers():
        mixer = at.block.mixer
        if mixer.rotary_dim and rope_key(mixer) not in tables:
            name = f"rope_{len(tables)}" if tables else "rope"
            lanes = round_up(mixer.head_dim, LANES)
            assert mixer.rope is not None
            tables[rope_key(mixer)] = RopeTable(name, shape.context, mixer.rotary_dim, lanes, mixer.rope)
    return tables


def refuse_what_is_not_lowered(spec: ModelSpec, shape: StepShape) -> None:
    """Raises SpecError naming everything the kernels cannot express yet, and sizes that are out of range."""
    problems = list(unsupported(spec))
    if not 1 <= shape.rows <= 16:
        problems.append(f"rows: {shape.rows} is not between 1 and 16")
    if not 1 <= shape.context <= spec.max_position:
        problems.append(f"context: {shape.context} is not between 1 and max_position {spec.max_position}")
    if problems:
        raise SpecError(spec.name, problems)
