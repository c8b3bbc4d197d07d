"""The way into a latent space of experts, and the router beside it, computed in parts and gathered in one exchange."""

from __future__ import annotations

from collections.abc import Mapping

from schedc.ir.expr import Expr
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import EXCHANGE, occurrence_parity
from schedc.lower.collectives.stages import Gather
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import LANES, Declarations, Grain, Matrix, Phase, Site, StepShape, ceil_div, round_up
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.values import panels
from schedc.placement.split import Split
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns


class SplitEntry:
    """Several projections of one operand: each device computes whole panels of all of them, and gets those of all.

    `outputs`: weight → (which of its columns a device has, the region that gets all of them, f32).
    """

    def __init__(
        self,
        outputs: Mapping[str, tuple[Split, Region]],
        spec: ModelSpec,
        shape: StepShape,
        place: Place,
        source: Region,
        stored: str,
    ) -> None:
        self.outputs, self.shape, self.place, self.source = outputs, shape, place, source
        columns = tuple(
            Columns(weight, 0, split.each, round_up(split.each, LANES), **split.shard())
            for weight, (split, _) in outputs.items()
        )
        dtype = spec.quantization.operand_dtype
        self.matrix = Matrix(place.named("w_entry"), stored, dtype, spec.hidden, columns, place.layers)
        group, words = Group(shape.devices, shape.devices), self.matrix.units * shape.rows
        self.gather = Gather(place.named("entry_parts"), group, words, EXCHANGE, pieces=1)

    def declarations(self, grain: Grain) -> Declarations:
        own = Buffer(self.place.named("entry"), WORK, output_rows(self.matrix, grain, self.shape.padded_rows))
        return Declarations((own,)) + self.gather.declarations()

    def begin(self, grain: Grain) -> tuple[Phase, ...]:
        """This device's panels, on their way to all others. Only rows that are used are sent."""
        named, rows, panels = self.place.named, self.shape.padded_rows, self.matrix.units
        own = Region(named("entry"), panels * rows)
        sizes: dict[str, Attribute] = {"rows": rows, "used": self.shape.rows, "panels": panels}

        def send(site: Site) -> tuple[Op, ...]:
            slot = self._parity(site)
            pack = compute("pack_panels", {"x": own}, {"out": self.gather.out(slot)}, attributes=sizes)
            return (pack, *self.gather.send(slot))

        return (
            projection(named("entry"), self.matrix, self.source, own.storage, grain, rows),
            Phase(named("entry_send"), send),
        )

    def end(self) -> tuple[Phase, ...]:
        """All devices' panels, in the order of the columns."""

        def join(site: Site) -> tuple[Op, ...]:
            slot, ops, first = self._parity(site), [], 0
            for split, region in self.outputs.values():
                each = ceil_div(split.each, LANES)
                ops.append(self._joined(slot, region, split, each, first))
                first += each
            return (*self.gather.wait(slot), *ops, *self.gather.settle(slot))

        values = tuple(
            panels(weight, region.storage, split.total, self.shape.padded_rows)
            for weight, (split, region) in self.outputs.items()
        )
        return (Phase(self.place.named("entry_join"), join, values=values),)

    def _joined(self, slot: Expr, region: Region, split: Split, each: int, first: int) -> Op:
        attributes: dict[str, Attribute] = {
            "rows": self.shape.padded_rows,
            "used": self.shape.rows,
            "panels": ceil_div(split.total, LANES),
            "each": each,
            "every": split.every if split.is_split else 0,
            "first": first,
            "devices": self.shape.devices,
        }
        blocks = self.gather.received(slot)["blocks"]
        return compute("join_panels", {"blocks": blocks}, {"out": region}, attributes=attributes)

    def _parity(self, site: Site) -> Expr:
        return occurrence_parity(0, 1, 0, site.trip)
