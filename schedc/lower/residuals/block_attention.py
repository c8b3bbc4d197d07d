"""Block attention residuals: `x` is the sum of the current block of layers, the sums of the blocks before lie in VMEM.

A half reads a mixture of all of them, normalised at once. They are f32 activations of one step: nothing is kept for
the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from schedc.ir.expr import Compare, Const, Expr, add, floordiv, mod, mul
from schedc.ir.program import Attribute, Buffer, Op, Region, When
from schedc.lower.graph import LANES, Declarations, Site, StepShape, ceil_div, round_up
from schedc.lower.norms import norm_kind, norm_vectors
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.residuals.stream import StreamLowering
from schedc.spec.model import Half, ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.residuals.block_attention import FINAL, BlockAttentionResidual


class BlockAttentionLowering(StreamLowering):
    """One row that counts lies as a vector of its own, several as rows of panels like `x`."""

    def __init__(self, residual: BlockAttentionResidual, spec: ModelSpec, shape: StepShape) -> None:
        super().__init__(spec, shape)
        self.residual = residual
        self.most = residual.sources(spec.num_layers)
        panels = ceil_div(spec.hidden, LANES)
        vector = round_up(panels, 8)
        if shape.rows == 1:
            self.suffix, self.each, self.scale_rows = "_of_one", vector, 8
            self.used = panels
            scratch = vector + 2 * round_up(self.most + 2, 8)
        else:
            self.suffix, self.each, self.scale_rows = "", self.x.rows, shape.padded_rows
            self.used = self.each
            scratch = vector + (self.most + 1) * shape.padded_rows + self.x.rows
        self.blocks = Buffer("block_sums", WORK, self.most * self.each)
        self.scales = Buffer("block_scales", WORK, self.most * self.scale_rows)
        self.scratch = Buffer("mixture_scratch", WORK, scratch)

    def joining(self, half: Half, site: Site) -> tuple[Mapping[str, Region], Mapping[str, Attribute]]:
        return {}, {"multiplier": 1.0}

    def declarations(self) -> Declarations:
        return Declarations((self.blocks, self.scales, self.scratch))

    def begin(self) -> tuple[Op, ...]:
        """What is not there yet must be finite: it is read, with a share of zero."""
        return tuple(
            compute("zero", writes={"out": Region(buffer.name, buffer.rows)}) for buffer in (self.blocks, self.scales)
        )

    def enter(self, half: Half, norm: Norm | None, out: Region, site: Site, place: Place) -> tuple[Op, ...]:
        layer, size = layer_number(place, site.trip), self.residual.block

        def before(number: int) -> int:
            """Sums that are stored when a half of this layer reads."""
            return ceil_div(number, size) if half == "mixer" else number // size + 1

        counts = {before(number) for number in place.layers}
        if counts == {0}:
            mixed = super().enter(half, norm, out, site, place)
        else:
            stored = floordiv(add(layer, size - 1), size) if half == "mixer" else add(floordiv(layer, size), 1)
            count = stored if len(counts) > 1 else Const(max(counts))
            mixed = self._mixed(f"{half}_residual", norm, f"pre_{half}_norm", out, site, count, max(counts))
        return (*mixed, *self._append(layer, place)) if half == "mixer" else mixed

    def final(self, norm: Norm, out: Region, site: Site) -> tuple[Op, ...]:
        return self._mixed(FINAL, norm, "final_norm", out, site, Const(self.most), self.most)

    def _mixed(
        self, mixture: str, norm: Norm | None, normed: str, out: Region, site: Site, count: Expr, sources: int
    ) -> tuple[Op, ...]:
        """`out` of the first `count` sums of at most `sources`."""
        reads: dict[str, Region | None] = {
            "x": self.x,
            "blocks": Region(self.blocks.name, sources * self.each),
            "scales": Region(self.scales.name, sources * self.scale_rows),
            "gain": site.vector(f"{mixture}.norm"),
            "query": site.vector(f"{mixture}.query"),
        }
        attributes = self.size | {
            "sources": sources,
            "mixture_eps": self.residual.eps,
            "dtype": self.spec.quantization.operand_dtype,
        }
        if norm is not None:
            reads |= norm_vectors(norm, site, normed)
            attributes |= {"eps": norm.eps, "kind": norm_kind(norm)}
        writes: dict[str, Region | None] = {"scratch": Region(self.scratch.name, self.scratch.rows), "out": out}
        return (compute(f"mixed_norm{self.suffix}", reads, writes, scalars={"count": count}, attributes=attributes),)

    def _append(self, layer: Expr, place: Place) -> tuple[Op, ...]:
        """At the first layer of a block its predecessor's sum is stored, and a new one begins."""
        size = self.residual.block
        begins = beginnings(place.layers, size)
        if begins == "none":
            return ()
        index = floordiv(layer, size)
        append = compute(
            f"append_sum{self.suffix}",
            writes={
                "block": Region(self.blocks.name, self.used, mul(index, self.each)),
                "scale": Region(self.scales.name, self.scale_rows, mul(index, self.scale_rows)),
            },
            updates={"x": self.x},
            attributes=self.size,
            eps=self.residual.eps,
        )
        return (append,) if begins == "all" else (When((Compare("==", mod(layer, size), Const(0)),), (append,)),)


def beginnings(layers: Sequence[int], block: int) -> Literal["none", "some", "all"]:
    """Which of the layers at one place of a run are the first of a block."""
    firsts = [layer % block == 0 for layer in layers]
    if all(firsts):
        return "all"
    return "some" if any(firsts) else "none"


def layer_number(place: Place, trip: Expr) -> Expr:
    """The number of the layer at a place of a run, from 0 over the model."""
    first, *more = place.layers
    return add(mul(trip, more[0] - first), first) if more else Const(first)
