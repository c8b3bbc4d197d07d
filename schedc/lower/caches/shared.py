"""Attention to a cache whose tiles lie on the devices of a group in turn.

Every device gets the queries of all heads of the group, attends to its own tiles, and gives back to each device the
softmaxes of that device's heads, which are combined there: softmax over all tiles. A device without a tile of a
sequence gives the empty softmax, whose weights are zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedc.ir.expr import Const
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import EXCHANGE, Exchanged, complete
from schedc.lower.collectives.stages import Gather, Scatter, Staged
from schedc.lower.graph import Declarations, Phase, Site, StepShape, round_up
from schedc.lower.parts import WORK, Place, compute
from schedc.lower.values import Value
from schedc.weights.layout import WordDtype


@dataclass(frozen=True)
class Sections:
    """A sequence's queries are `query` sections, its softmax is `panels` of a weighted sum, a maximum and a sum of
    weights. Each has `block` rows of every device, whole groups of 8; if only some are of heads, the first `used` ones,
    those alone lie beside those of other devices where all heads are together (0: all)."""

    query: int
    panels: int
    block: int
    used: int = 0

    @property
    def softmax(self) -> int:
        return self.panels + 2

    def joined(self, devices: int) -> int:
        """Rows of a section with all heads of the group."""
        return round_up(devices * (self.used or self.block), 8)

    def sizes(self, devices: int, sections: int) -> dict[str, Attribute]:
        """What the operations that join and part sections take."""
        sizes: dict[str, Attribute] = {"devices": devices, "sections": sections, "block": self.block}
        return sizes | ({"used": self.used} if self.used else {})


class SharedTiles:
    """The mixer fills `own_queries` and reads `own_softmax`, each of this device's heads; the cache stream has all.

    Layers that give the same `name` share what is exchanged through.
    """

    def __init__(
        self, shape: StepShape, place: Place, group: Group, sections: Sections, cache_dtype: str, name: str = "shared"
    ) -> None:
        self.shape, self.place, self.group, self.sections = shape, place, group, sections
        self.query_sections = shape.sequences * sections.query
        self.softmax_sections = shape.sequences * sections.softmax
        block = sections.block
        rows = self.query_sections * block
        # Queries are multiplied by the cache as bf16 unless it is f32, so they lose nothing on a bf16 wire.
        wire: WordDtype = "f32" if cache_dtype == "f32" else "bf16"
        topology = shape.communication.topology
        # The two exchanges take turns, in whatever layers: a device sends its softmaxes again only when it has the next
        # queries of every peer, and those follow what the peer has read of the last softmaxes; queries the same. So one
        # slot is enough, and all layers share it.
        exchanged = Exchanged(f"{name}_q", "all_gather", group, topology, rows, wire)
        gather = Gather(f"{name}_q", group, exchanged.words(rows), EXCHANGE, pieces=1, single=True)
        self.queries = Staged(exchanged, ((gather, "keep"),), (group.size,))
        block_rows = self.softmax_sections * block
        self.softmaxes = Scatter(f"{name}_softmax", group, block_rows, EXCHANGE, pieces=1, single=True)
        self.gathered = Region(place.named("q_gathered"), rows * group.size)
        # Sequences lie one after the other, the rows that pad them last: those are not sent.
        self.own_queries = Region(place.named("q_own"), shape.padded_sequences * sections.query * block)
        self.own_softmax = Region(place.named("softmax_own"), shape.padded_sequences * sections.softmax * block)

    def declarations(self) -> Declarations:
        regions = (self.own_queries, self.gathered, self.own_softmax)
        buffers = tuple(Buffer(region.storage, WORK, region.rows) for region in regions)
        return Declarations(buffers) + self.queries.declarations() + self.softmaxes.declarations()

    def begin(self) -> tuple[Op, ...]:
        """Before the first layer: what pads the sequences is finite."""
        if self.shape.padded_sequences == self.shape.sequences:
            return ()
        return (compute("zero", writes={"out": self.own_softmax}),)

    def before(self, q: Region) -> tuple[Phase, ...]:
        """All devices' queries into `q`."""
        sizes = self.sections.sizes(self.group.size, self.query_sections)
        joined = _first(q, self.query_sections * self.sections.joined(self.group.size))
        rows = self.query_sections * self.sections.block

        def send(site: Site) -> tuple[Op, ...]:
            return self.queries.start(_first(self.own_queries, rows), Const(0))

        def receive(site: Site) -> tuple[Op, ...]:
            come = complete(self.queries, self.gathered, Const(0))
            return *come, compute("join_queries", {"x": self.gathered}, {"q": joined}, attributes=sizes)

        return Phase(self.place.named("send_queries"), send), Phase(self.place.named("join_queries"), receive)

    def behind(self, softmax: Region, mixed: Value) -> tuple[Phase, ...]:
        """This device's heads over the tiles of all devices into `own_softmax`, which is then `mixed`."""
        sizes = self.sections.sizes(self.group.size, self.softmax_sections)
        joined = _first(softmax, self.softmax_sections * self.sections.joined(self.group.size))
        exchange, rows = self.softmaxes, self.softmax_sections * self.sections.block

        def send(site: Site) -> tuple[Op, ...]:
            slot = Const(0)
            part = compute("part_softmaxes", {"state": joined}, {"out": exchange.out(slot)}, attributes=sizes)
            return part, *exchange.send(slot)

        def receive(site: Site) -> tuple[Op, ...]:
            slot = Const(0)
            combine = compute(
                "combine_softmaxes",
                exchange.received(slot),
                {"state": _first(self.own_softmax, rows)},
                count=exchange.count,
                sequences=self.shape.sequences,
                panels=self.sections.panels,
                block=self.sections.block,
            )
            return *exchange.wait(slot), combine, *exchange.settle(slot)

        return Phase(self.place.named("send_softmaxes"), send), Phase(
            self.place.named("combine"), receive, values=(mixed,)
        )


def _first(region: Region, rows: int) -> Region:
    return replace(region, rows=rows)
