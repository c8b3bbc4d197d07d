"""The sum of the experts' latents joined with that of a layer's outputs: three hops where two sums apart take four.

Each device gets its part of the summed latents alone, which is all that its rows of the way back want. Their norm is a
factor of the whole row, 1 / rms, that nobody knows yet: each device sends its sum of squares with its partial outputs,
and what adds a part of these multiplies it. What the shared expert gives is not scaled: it is summed by parts before,
while the chosen experts run, and joins behind the factor.

    shared expert → its parts ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┐
    experts → latents' parts → · w → way back → outputs' parts, squares → · 1/rms + → parts to all

One slot is enough everywhere: a peer that scatters again has the outputs of this device, which has then read all
blocks of the occurrence before, and one that gathers again has what this device scattered after it had read the sums.
"""

from __future__ import annotations

from schedc.ir.expr import Const
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.collectives.communication import FUSED
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import EXCHANGE, Exchanged
from schedc.lower.collectives.registry import ALGORITHMS
from schedc.lower.collectives.stages import Gather, Scatter
from schedc.lower.graph import LANES, PER_WORD, Declarations, Phase, Site, StepShape, ceil_div
from schedc.lower.norms import norm_kind
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.values import Piece, Value, panels
from schedc.spec.feed_forwards.moe import Latent
from schedc.weights.layout import WordDtype

ONCE = Const(0)
HOPS = 3
"""The parts of the latents, those of the outputs, and these to all."""


def can_fuse(latent: Latent, shape: StepShape) -> bool:
    """Whether the norm behind the sum is a factor of the row, as that of an rms norm is, and there are devices."""
    return shape.devices > 1 and latent.norm_out is not None and latent.norm_out.kind == "rms"


def is_fused(latent: Latent, shape: StepShape, hidden: int) -> bool:
    """Whether latents are summed so: as it is asked for, or where it saves a hop, each of which costs more than the
    few rows of a step do."""
    talk = shape.communication
    asked = talk.asked("latent")
    if asked is not None or not can_fuse(latent, shape):
        return asked == FUSED
    hops = 0
    for columns, algorithm in ((latent.width, talk.algorithm("latent")), (hidden, talk.algorithm("feed_forward"))):
        rows, group = ceil_div(columns, LANES) * shape.padded_rows, Group(shape.devices, shape.devices)
        hops += len(ALGORITHMS[algorithm].hops(Exchanged("hops", "all_reduce", group, talk.topology, rows, "f32")))
    return hops > HOPS


class FusedLatents:
    """`total` is what this device's experts give, `output` what its shared expert gives, and at last what all give."""

    def __init__(
        self, latent: Latent, hidden: int, shape: StepShape, place: Place, total: Region, output: str, name: str
    ) -> None:
        self.latent, self.shape, self.place, self.total, self.columns = latent, shape, place, total, hidden
        talk, group = shape.communication, Group(shape.devices, shape.devices)
        self.output = Region(output, ceil_div(hidden, LANES) * shape.padded_rows)
        self.narrow, self.wide = talk.wire_of("latent"), talk.wire_of("feed_forward")
        self.latent_panels = ceil_div(ceil_div(latent.width, LANES), shape.devices)
        self.output_panels = ceil_div(ceil_div(hidden, LANES), shape.devices)
        latents, outputs = self._words(self.latent_panels, self.narrow), self._words(self.output_panels, self.wide)

        def scatter(what: str, words: int) -> Scatter:
            return Scatter(f"{name}_{what}", group, words, f"{EXCHANGE}_0", pieces=1, single=True)

        self.latents, self.shared = scatter("latents", latents), scatter("shared", outputs)
        self.outputs = scatter("outputs", outputs + 1)
        self.gather = Gather(f"{name}_sums", group, outputs, f"{EXCHANGE}_1", pieces=1, single=True)
        named = place.named
        self.latent_part = Region(named("latent_part"), self.latents.pitch * PER_WORD[self.narrow])
        self.shared_part = Region(named("shared_part"), self.shared.pitch * PER_WORD[self.wide])
        self.squares = Region(named("latent_squares"), 8)

    def _words(self, panels: int, wire: WordDtype) -> int:
        return ceil_div(panels * self.shape.rows, PER_WORD[wire])

    def _parts(self, wire: WordDtype) -> dict[str, Attribute]:
        return {
            "wire": wire,
            "members": self.shape.devices,
            "height": self.shape.padded_rows,
            "used": self.shape.rows,
        }

    def _of_part(self, panels: int) -> dict[str, Attribute]:
        return {"each": panels, "height": self.shape.padded_rows, "used": self.shape.rows}

    def declarations(self, joins: bool) -> Declarations:
        regions = (self.latent_part, self.squares, *((self.shared_part,) if joins else ()))
        own = Declarations(tuple(Buffer(region.storage, WORK, region.rows) for region in regions))
        own += self.latents.declarations() + self.outputs.declarations() + self.gather.declarations()
        return own + self.shared.declarations() if joins else own

    def send_shared(self) -> Phase:
        """The parts of what the shared expert gives, on their way while the chosen experts run."""
        return Phase(self.place.named("shared_send"), lambda site: self._scattered(self.shared, self.output, self.wide))

    def send(self) -> Phase:
        """The parts of the latents."""
        name = self.place.named("expert_latent_send")
        return Phase(name, lambda site: self._scattered(self.latents, self.total, self.narrow))

    def _scattered(self, stage: Scatter, source: Region, wire: WordDtype, last: Region | None = None) -> tuple[Op, ...]:
        reads = {"x": source, "last": last}
        return compute("pack_parts", reads, {"out": stage.out(ONCE)}, attributes=self._parts(wire)), *stage.send(ONCE)

    def receive(self, joins: bool) -> Phase:
        """This device's parts of the sums."""

        def ops(site: Site) -> tuple[Op, ...]:
            shared = self._added(self.shared, self.shared_part, self.wide) if joins else ()
            return *shared, *self._added(self.latents, self.latent_part, self.narrow)

        values = [self._part_value("mlp.sum", self.latent_part, self.latent_panels)]
        if joins:
            values.append(self._part_value("mlp.gated_shared", self.shared_part, self.output_panels))
        return Phase(self.place.named("expert_latent_total"), ops, values=tuple(values))

    def _part_value(self, meaning: str, part: Region, panels: int) -> Value:
        """This device's panels: panel after panel, or, where not all rows are used, the panels of row after row."""
        used, height, width = self.shape.rows, self.shape.padded_rows, panels * LANES
        steps = (1, height) if used == height else (panels, 1)
        own = Piece(0, width, 0, *steps, step=width, ring=self.shape.devices)
        return Value(meaning, part.storage, (own,))

    def _added(self, stage: Scatter, target: Region, wire: WordDtype) -> tuple[Op, ...]:
        came, out = stage.received(ONCE), {"out": target}
        summed = compute("sum_wire", came, out, count=stage.count, wire=wire, result="f32")
        return *stage.wait(ONCE), summed, *stage.settle(ONCE)

    def operand(self, out: Region, dtype: str) -> Phase:
        """The left side of the way back, without the factor that is not known yet."""
        norm = self.latent.norm_out
        assert norm is not None

        def ops(site: Site) -> tuple[Op, ...]:
            reads = {
                "x": self.latent_part,
                "weight": site.vector("mlp.latent_norm_out_weight") if norm.weight else None,
            }
            writes = {"out": out, "squares": self.squares}
            sizes = self._of_part(self.latent_panels)
            return (compute("operand_of_part", reads, writes, attributes=sizes, kind=norm_kind(norm), dtype=dtype),)

        return Phase(self.place.named("expert_latent_norm_out"), ops, vectors=self.place.named("vectors"))

    def sum_outputs(self, back: Region, joins: bool) -> tuple[Phase, ...]:
        """The sum of all devices' `back` times the factor, and of the shared expert, into `output`."""
        norm, shape = self.latent.norm_out, self.shape
        assert norm is not None
        named, eps = self.place.named, norm.eps

        def send(site: Site) -> tuple[Op, ...]:
            return self._scattered(self.outputs, back, self.wide, self.squares)

        def receive(site: Site) -> tuple[Op, ...]:
            came = {**self.outputs.received(ONCE), "plain": self.shared_part if joins else None}
            sizes = self._of_part(self.output_panels) | {"wire": self.wide, "columns": self.latent.width}
            out = {"out": self.gather.out(ONCE)}
            scaled = compute("sum_scaled", came, out, attributes=sizes, count=self.outputs.count, eps=eps)
            # Rows that nobody sends hold what the shared expert gives, else nothing.
            clear = () if joins or shape.rows == shape.padded_rows else (compute("zero", writes={"out": self.output}),)
            blocks = self.gather.received(ONCE)
            unpack = compute("unpack_parts", blocks, {"out": self.output}, attributes=self._parts(self.wide))
            first = (*self.outputs.wait(ONCE), scaled, *self.gather.send(ONCE), *clear, *self.outputs.settle(ONCE))
            return *first, *self.gather.wait(ONCE), unpack, *self.gather.settle(ONCE)

        total = panels("mlp.out", self.output.storage, self.columns, shape.padded_rows)
        return Phase(named("feed_forward_send"), send), Phase(named("feed_forward_sum"), receive, values=(total,))
