"""The head: the final norm, the projection to the vocabulary, the arg-max, over all devices that hold a part of it."""

from __future__ import annotations

from schedc.ir.expr import Compare, Const, Element, Expr, Rank, minimum, mod, mul, sub
from schedc.ir.program import Array, Buffer, Op, Region, Semaphore, SemaphoreRef, Start, Wait, When
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import Collective, Exchanged, complete
from schedc.lower.collectives.registry import make_collective
from schedc.lower.graph import (
    LANES,
    Declarations,
    Grain,
    Matrix,
    Phase,
    Site,
    StepShape,
    Stream,
    VectorBlock,
    ceil_div,
)
from schedc.lower.norms import norm_items
from schedc.lower.parts import WORK, compute, operand_words
from schedc.lower.residuals.protocol import ResidualLowering
from schedc.lower.values import LOGITS, operand
from schedc.placement.widths import head_split
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns


class HeadLowering:
    """Reads what the residual gives it, leaves the best ids of the whole vocabulary in `ids`, and its logits if wanted.

    The logits are those of this device's columns.
    """

    def __init__(self, spec: ModelSpec, shape: StepShape, residual: ResidualLowering) -> None:
        self.spec, self.shape, self.residual = spec, shape, residual
        self.dtype = spec.quantization.operand_dtype
        self.split = head_split(spec.vocab, shape.devices, shape.placement)
        weight = "embed" if spec.embedding.tied else "head"
        columns = Columns(weight, 0, self.split.each, **self.split.shard())
        self.matrix = Matrix("w_head", spec.quantization.format("head"), self.dtype, spec.hidden, (columns,))
        items = (*norm_items(spec.final_norm, "final_norm", spec), *residual.outer_vectors())
        self.vectors = VectorBlock("final_vectors", items)
        self.gather = all_gather(shape) if self.split.is_split else None

    def streams(self) -> tuple[Stream, ...]:
        return self.vectors, self.matrix

    def declarations(self, grain: Grain) -> Declarations:
        rows = self.shape.padded_rows
        logits = grain.tile_units[self.matrix.name] * rows
        declared = Declarations(
            (
                Buffer("head_in", WORK, ceil_div(self.spec.hidden, LANES) * operand_words(rows, self.dtype)),
                Buffer("best", WORK, 2 * rows),
                Buffer("ids_out", WORK, rows),
            ),
            (Array("ids", rows, "output"),),
            semaphores=(Semaphore("ids_written"),),
        )
        if self.shape.logits:
            declared += Declarations(
                (Buffer("logits_tile", WORK, logits, slots=2),),
                (Array("logits", grain.tiles(self.matrix) * logits, "output"),),
                semaphores=(Semaphore("logits_written", 2),),
            )
        if self.gather is None:
            return declared
        candidates = Buffer("candidates", WORK, self.gather.exchanged.target_rows)
        return declared + self.gather.declarations() + Declarations((candidates,))

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        spec, rows = self.spec, self.shape.padded_rows
        panels = grain.tile_units[self.matrix.name]
        head_in = Region("head_in", ceil_div(spec.hidden, LANES) * operand_words(rows, self.dtype))
        best = Region("best", 2 * rows)

        def norm(site: Site) -> tuple[Op, ...]:
            return (
                *self.residual.final(spec.final_norm, head_in, site),
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
                scalars={"tile": site.tile, **self._ids()},
                rows=rows,
                depth=spec.hidden,
                panels=panels,
                dtype=self.dtype,
                format=self.matrix.stored,
                multiplier=spec.head.multiplier,
                soft_cap=spec.head.soft_cap or 0.0,
            )

        def logits_out(site: Site) -> tuple[Op, ...]:
            return logits_tile(site, panels * rows, grain.tiles(self.matrix), fold)

        def finish(site: Site) -> tuple[Op, ...]:
            active = [Element("active", Const(row)) for row in range(self.shape.rows)]
            ids = Region("ids_out", rows)
            done = SemaphoreRef("ids_written")
            settle = logits_settle(panels * rows, grain.tiles(self.matrix)) if self.shape.logits else ()
            gathered, candidates = self._gathered(best)
            return (
                *gathered,
                compute(
                    "head_finish",
                    {"best": candidates},
                    {"out": ids},
                    scalars={"active": active},
                    rows=rows,
                    sequences=self.shape.rows,
                    devices=self.split.ring,
                ),
                Start(ids, Region("ids", rows), done),
                *settle,
                Wait(done, rows),
            )

        entered = operand("final_in", "head_in", spec.hidden, rows, self.dtype)
        return (
            Phase("final_norm", norm, vectors=self.vectors.name, values=(entered,)),
            Phase("head", head, stream=self.matrix.name, values=(LOGITS,)),
            Phase("finish", finish),
        )

    def _ids(self) -> dict[str, Expr | int]:
        """Which ids the columns of this device stand for: from `first` on, `count` of them, none if it is negative."""
        if not self.split.is_split:
            return {"first": 0, "count": self.spec.vocab}
        first = mul(Rank(), self.split.each)
        return {"first": first, "count": minimum(sub(self.spec.vocab, first), self.split.each)}

    def _gathered(self, best: Region) -> tuple[tuple[Op, ...], Region]:
        """The best of every device, of which the lowest id wins where they are equal."""
        if self.gather is None:
            return (), best
        candidates = Region("candidates", self.gather.exchanged.target_rows)
        once = Const(0)
        return (*self.gather.start(best, once), *complete(self.gather, candidates, once)), candidates


def all_gather(shape: StepShape) -> Collective:
    """What brings every device's best logits and their ids, f32[2 · rows, 128], to all."""
    group = Group(shape.devices, shape.devices)
    best = Exchanged("best_of_all", "all_gather", group, shape.communication.topology, 2 * shape.padded_rows)
    return make_collective("one_shot", best)


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
