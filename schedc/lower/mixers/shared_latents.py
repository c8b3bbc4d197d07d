"""Latent attention to a cache whose tiles lie on the devices in turn.

Every device gets the queries of all heads, attends to its own tiles, and gives back to each device the softmaxes of
that device's heads, which are combined there: softmax over all tiles.
"""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const
from schedc.ir.program import Buffer, Op, Region
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import EXCHANGE, Exchanged, complete
from schedc.lower.collectives.stages import Gather, Scatter, Staged
from schedc.lower.graph import Declarations, Phase, Site, StepShape
from schedc.lower.parts import WORK, Place, compute
from schedc.weights.layout import WordDtype


class SharedLatents:
    """`block` rows of queries a device, panel and sequence; `panels` of a query, `latent_panels` of a weighted sum."""

    def __init__(
        self, shape: StepShape, place: Place, panels: int, latent_panels: int, block: int, cache_dtype: str
    ) -> None:
        self.shape, self.place, self.block, self.latent_panels = shape, place, block, latent_panels
        self.query_sections = shape.sequences * panels
        self.softmax_sections = shape.sequences * (latent_panels + 2)
        group = Group(shape.devices, shape.devices)
        rows = self.query_sections * block
        # Queries are multiplied by the cache as bf16 unless it is f32, so they lose nothing on a bf16 wire.
        wire: WordDtype = "f32" if cache_dtype == "f32" else "bf16"
        topology = shape.communication.topology
        # The two exchanges take turns, in whatever layers: a device sends its softmaxes again only when it has the next
        # queries of every peer, and those follow what the peer has read of the last softmaxes; queries the same. So one
        # slot is enough, and all layers share it.
        exchanged = Exchanged("shared_q", "all_gather", group, topology, rows, wire)
        gather = Gather("shared_q", group, exchanged.words(rows), EXCHANGE, pieces=1, single=True)
        self.queries = Staged(exchanged, ((gather, "keep"),), (group.size,))
        block_rows = self.softmax_sections * block
        self.softmaxes = Scatter("shared_softmax", group, block_rows, EXCHANGE, pieces=1, single=True)
        self.gathered = Region(place.named("q_gathered"), rows * shape.devices)
        # Sequences lie one after the other, the rows that pad them last: those are not sent.
        self.own_queries = Region(place.named("q_own"), shape.padded_sequences * panels * block)
        self.own_softmax = Region(place.named("softmax_own"), shape.padded_sequences * (latent_panels + 2) * block)

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
        sizes = {"devices": self.shape.devices, "sections": self.query_sections, "block": self.block}
        rows = self.query_sections * self.block

        def send(site: Site) -> tuple[Op, ...]:
            return self.queries.start(_first(self.own_queries, rows), Const(0))

        def receive(site: Site) -> tuple[Op, ...]:
            come = complete(self.queries, self.gathered, Const(0))
            return *come, compute(
                "join_queries", {"x": self.gathered}, {"q": _first(q, rows * self.shape.devices)}, attributes=sizes
            )

        return Phase(self.place.named("send_queries"), send), Phase(self.place.named("join_queries"), receive)

    def behind(self, softmax: Region) -> tuple[Phase, ...]:
        """This device's heads over the tiles of all devices into `own_softmax`."""
        sizes = {"devices": self.shape.devices, "sections": self.softmax_sections, "block": self.block}
        exchange, rows = self.softmaxes, self.softmax_sections * self.block
        sent = _first(softmax, rows * self.shape.devices)

        def send(site: Site) -> tuple[Op, ...]:
            slot = Const(0)
            part = compute("part_softmaxes", {"state": sent}, {"out": exchange.out(slot)}, attributes=sizes)
            return part, *exchange.send(slot)

        def receive(site: Site) -> tuple[Op, ...]:
            slot = Const(0)
            combine = compute(
                "combine_softmaxes",
                exchange.received(slot),
                {"state": _first(self.own_softmax, rows)},
                count=exchange.count,
                sequences=self.shape.sequences,
                panels=self.latent_panels,
                block=self.block,
            )
            return *exchange.wait(slot), combine, *exchange.settle(slot)

        return Phase(self.place.named("send_softmaxes"), send), Phase(self.place.named("combine"), receive)


def _first(region: Region, rows: int) -> Region:
    return replace(region, rows=rows)
