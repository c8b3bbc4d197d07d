"""The narrower space that experts may work in: the way into it, the sum of what they give, the way back."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Expr, Rank, mul
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import Collective, Exchanged, complete
from schedc.lower.collectives.registry import make_collective
from schedc.lower.collectives.turn import turn_of
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.feed_forwards.fused_latent import FusedLatents, is_fused
from schedc.lower.graph import LANES, Declarations, Grain, Matrix, Phase, Site, StepShape, ceil_div
from schedc.lower.norms import norm_kind
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.values import operand as operand_value
from schedc.lower.values import panels
from schedc.placement.split import evenly
from schedc.spec.feed_forwards.moe import Latent, Moe
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import Columns, Inputs, VectorItem


class LatentSpace:
    """Experts read `operand` and add to `total`; the way back leaves f32 in `output`, or adds to what is there.

    Of one device; of several each has only some columns of the way in, and `SplitEntry` brings together what they give
    in `entered`. The experts' outputs are summed over devices before the norm of the way back, of which each device
    takes a part of the rows; or (`fused`) each gets its part alone, and `output` is what all devices give.
    """

    def __init__(
        self, latent: Latent, spec: ModelSpec, shape: StepShape, place: Place, source: Region, output: str
    ) -> None:
        self.latent, self.spec, self.shape, self.place = latent, spec, shape, place
        self.source, self.output = source, output
        self.entered = Region(place.named("expert_latent"), self._rows(latent.width))
        self.operand = Region(place.named("expert_in"), self._operand_rows(latent.width))
        self.total = Region(place.named("expert_sum"), self._rows(latent.width))
        self.split = evenly(latent.width, shape.devices, LANES)
        stored, dtype = spec.quantization.format("dense"), spec.quantization.operand_dtype
        self.way_in = Matrix(
            place.named("w_latent_in"),
            stored,
            dtype,
            spec.hidden,
            (Columns("mlp.latent_in", 0, latent.width),),
            place.layers,
        )
        self.way_back = Matrix(
            place.named("w_latent_out"),
            stored,
            dtype,
            self.split.each,
            (Columns("mlp.latent_out", 0, spec.hidden),),
            place.layers,
            (Inputs(0, self.split.each, **self.split.shard()),) if self.split.is_split else (),
        )
        self.fused: FusedLatents | None = None
        if is_fused(latent, shape, spec.hidden):
            name = self._shared_name("latent")
            self.fused = FusedLatents(latent, spec.hidden, shape, place, self.total, output, name)
        self.collective = self._collective() if shape.devices > 1 and self.fused is None else None
        alike = [layer for layer, width in _latent_widths(spec).items() if width == latent.width]
        self.turn = turn_of(place.layers, alike)

    def _collective(self) -> Collective:
        """What all layers with a latent space of this width share."""
        devices, talk = self.shape.devices, self.shape.communication
        name, wire, group = self._shared_name("latent_parts"), talk.wire_of("latent"), Group(devices, devices)
        summed = Exchanged(name, "all_reduce", group, talk.topology, self.total.rows, wire)
        if self.shape.rows < self.shape.padded_rows:
            summed = replace(summed, height=self.shape.padded_rows, used=self.shape.rows)
        return make_collective(talk.algorithm("latent"), summed)

    def _shared_name(self, name: str) -> str:
        """Of what all layers with a latent space of this width share."""
        several = len(set(_latent_widths(self.spec).values())) > 1
        return f"{name}_{self.latent.width}" if several else name

    def _operand_rows(self, columns: int) -> int:
        return ceil_div(columns, LANES) * operand_words(self.shape.padded_rows, self.spec.quantization.operand_dtype)

    def _rows(self, columns: int) -> int:
        return ceil_div(columns, LANES) * self.shape.padded_rows

    def matrices(self) -> tuple[Matrix, ...]:
        return (self.way_in, self.way_back) if self.shape.devices == 1 else (self.way_back,)

    def vectors(self) -> tuple[VectorItem, ...]:
        width = self.latent.width
        behind = norm_vectors_of(self.latent.norm_out, "mlp.latent_norm_out", width)
        if self.fused is not None and self.split.is_split:
            behind = tuple(self._part_of(item) for item in behind)
        return (*norm_vectors_of(self.latent.norm_in, "mlp.latent_norm_in", width), *behind)

    def _part_of(self, item: VectorItem) -> VectorItem:
        return VectorItem(item.weight, self.split.each, add=item.add, of=item.length, **self.split.shard())

    def declarations(self, grain: Grain, joins: bool) -> Declarations:
        named, rows = self.place.named, self.shape.padded_rows
        whole_tiles = output_rows(self.way_in, grain, rows) if self.shape.devices == 1 else self.entered.rows
        buffers = {
            self.entered.storage: whole_tiles,
            self.operand.storage: self.operand.rows,
            self.total.storage: self.total.rows,
            named("expert_latent_sum"): self._operand_rows(self.split.each * (1 if self.fused else self.split.ring)),
            named("expert_latent_back"): output_rows(self.way_back, grain, rows),
        }
        own = Declarations(tuple(Buffer(name, WORK, size) for name, size in buffers.items()))
        if self.fused is not None:
            return own + self.fused.declarations(joins)
        return own if self.collective is None else own + self.collective.declarations()

    def way_in_phases(self, grain: Grain) -> tuple[Phase, ...]:
        """Of one device: x · Win into `entered`."""
        named, rows = self.place.named, self.shape.padded_rows
        return (projection(named("expert_latent_in"), self.way_in, self.source, self.entered.storage, grain, rows),)

    def enter(self) -> Phase:
        """The operand of the experts, of what is in `entered`."""

        def normed(site: Site) -> tuple[Op, ...]:
            return (self._as_operand(site, self.latent.norm_in, "mlp.latent_norm_in", self.entered, self.operand),)

        rows, dtype = self.shape.padded_rows, self.spec.quantization.operand_dtype
        values = (operand_value("mlp.latent", self.operand.storage, self.latent.width, rows, dtype),)
        name, vectors = self.place.named("expert_latent_norm_in"), self.place.named("vectors")
        return Phase(name, normed, vectors=vectors, values=values)

    def leave(self, grain: Grain, joins: bool) -> tuple[Phase, ...]:
        """`joins`: there is something in the output already."""
        return self._leave(grain, joins) if self.fused is None else self._leave_fused(self.fused, grain, joins)

    def _leave_fused(self, fused: FusedLatents, grain: Grain, joins: bool) -> tuple[Phase, ...]:
        named, rows = self.place.named, self.shape.padded_rows
        operand = Region(named("expert_latent_sum"), self._operand_rows(self.split.each))
        back = Region(named("expert_latent_back"), self._rows(self.spec.hidden))
        out = projection(named("expert_latent_out"), self.way_back, operand, back.storage, grain, rows)
        return (
            fused.send(),
            fused.receive(joins),
            fused.operand(operand, self.spec.quantization.operand_dtype),
            replace(out, values=()),  # The factor of the norm is still missing.
            *fused.sum_outputs(back, joins),
        )

    def _leave(self, grain: Grain, joins: bool) -> tuple[Phase, ...]:
        named, rows = self.place.named, self.shape.padded_rows
        whole = Region(named("expert_latent_sum"), self._operand_rows(self.split.each * self.split.ring))
        operand = replace(whole, rows=self._operand_rows(self.latent.width))
        part = replace(whole, rows=self._operand_rows(self.split.each))
        if self.split.is_split:
            part = replace(part, offset=mul(Rank(), part.rows))
        back = Region(named("expert_latent_back"), self._rows(self.spec.hidden))
        output = replace(back, storage=self.output)

        def normed(site: Site) -> tuple[Op, ...]:
            clear = (compute("zero", writes={"out": whole}),) if whole.rows > operand.rows else ()
            norm = self._as_operand(site, self.latent.norm_out, "mlp.latent_norm_out", self.total, operand)
            return (*clear, norm)

        def join(site: Site) -> tuple[Op, ...]:
            if not joins:
                return (compute("move", {"x": back}, {"out": output}),)
            shape: dict[str, Attribute] = {"rows": rows, "columns": self.spec.hidden}
            return (compute("residual_add", {"y": back}, updates={"x": output}, attributes=shape),)

        dtype, several = self.spec.quantization.operand_dtype, self.shape.devices > 1
        entered = operand_value("mlp.normed_sum", operand.storage, self.latent.width, rows, dtype)
        joined = panels("mlp.out", self.output, self.spec.hidden, rows, summed=several)
        return (
            *self._summed(),
            Phase(named("expert_latent_norm_out"), normed, vectors=named("vectors"), values=(entered,)),
            projection(named("expert_latent_out"), self.way_back, part, back.storage, grain, rows),
            Phase(named("expert_latent_add"), join, values=(joined,)),
        )

    def _summed(self) -> tuple[Phase, ...]:
        collective, total, named = self.collective, self.total, self.place.named
        if collective is None:
            return ()

        def parity(site: Site) -> Expr:
            return self.turn.parity(site.trip)

        return (
            Phase(named("expert_latent_send"), lambda site: collective.start(total, parity(site))),
            Phase(
                named("expert_latent_total"),
                lambda site: complete(collective, total, parity(site)),
                values=(panels("mlp.sum", total.storage, self.latent.width, self.shape.padded_rows),),
            ),
        )

    def _as_operand(self, site: Site, norm: Norm | None, name: str, x: Region, out: Region) -> Op:
        """The left side of a dot, normalised if there is a norm."""
        shape: dict[str, Attribute] = {
            "rows": self.shape.padded_rows,
            "columns": self.latent.width,
            "dtype": self.spec.quantization.operand_dtype,
        }
        if norm is None:
            return compute("as_operand", {"x": x}, {"out": out}, attributes=shape)
        parts = {part: site.vector(f"{name}_{part}") for part in ("weight", "bias") if getattr(norm, part)}
        return compute("norm", {"x": x} | parts, {"out": out}, attributes=shape, eps=norm.eps, kind=norm_kind(norm))


def _latent_widths(spec: ModelSpec) -> dict[int, int]:
    """Layer → the width of the latent space of its experts, of the layers that have one."""
    moes = {at.layer: at.block.feed_forward for at in spec.iter_layers() if isinstance(at.block.feed_forward, Moe)}
    return {layer: moe.latent.width for layer, moe in moes.items() if moe.latent is not None}


def norm_vectors_of(norm: Norm | None, name: str, width: int) -> tuple[VectorItem, ...]:
    """The vectors of a norm of `width` inside a feed-forward, called `name`_weight and `name`_bias."""
    if norm is None:
        return ()
    weight = VectorItem(f"{name}_weight", width, add=float(norm.unit_offset))
    return (*((weight,) if norm.weight else ()), *((VectorItem(f"{name}_bias", width),) if norm.bias else ()))
