"""Multi-head latent attention, absorbed: the up-projections of keys and values are applied to queries and outputs.

    q = norm(x·Wqa)·Wqb        qn·(c·Wuk)ᵀ = (qn·Wukᵀ)·cᵀ        softmax(s)·(c·Wuv) = (softmax(s)·c)·Wuv

So the heads attend to the cached latents c themselves, as the queries of one kv head; arXiv 2405.04434, section 2.1.2.
"""

from __future__ import annotations

from schedc.ir.expr import mul
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.caches.choose import STREAMS
from schedc.lower.caches.shared import Sections, SharedTiles
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.stream import Attention
from schedc.lower.caches.turns import Turns
from schedc.lower.collectives.group import Group
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import (
    LANES,
    Declarations,
    Grain,
    Phase,
    Site,
    StepShape,
    Stream,
    ceil_div,
    round_up,
)
from schedc.lower.head_streams import HeadMatrix, TransposedHeads
from schedc.lower.mixers.latent_projections import LatentProjections, kind_number, latent_chains, norm_reads
from schedc.lower.mixers.latent_values import LatentValues
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.values import KEPT
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, HeadOutputs


class MlaLowering(LatentProjections):
    """Every device has the whole cache, or its tiles in turn with the others."""

    def __init__(
        self, mla: Mla, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        super().__init__(mla, spec, shape, place, source, rope)
        split, heads, named, layers = self.split, self.heads, place.named, place.layers
        tokens = shape.rows_are == "tokens"
        self.block = heads * shape.padded_rows if tokens else round_up(heads, 8)
        self.heads_first: dict[str, Attribute] = {"heads_first": True} if tokens else {}
        self.values = LatentValues(mla, split, shape, place, self.dtype)
        self.shared: SharedTiles | None = None
        turns = Turns(shape.devices if shape.placement.kv == "sequence" else 1)
        if turns.shared:
            sections = Sections(self.latent_panels + self.key_panels, self.latent_panels, self.block)
            self.shared = SharedTiles(shape, place, Group(shape.devices, shape.devices), sections, spec.kv.dtype)
        attending = (heads if tokens else self.block) * turns.devices if turns.shared else heads
        self.cache = STREAMS[shape.rows_are](self._attention(attending), spec.kv, shape, place, turns)
        stride = mla.nope_dim + mla.value_dim
        keys = HeadOutputs("attn.kv_b", heads, 0, mla.nope_dim, stride, **split.shard(stride))
        self.up_keys = TransposedHeads(named("w_uk"), self.dtype, mla.nope_dim, mla.kv_rank, (keys,), layers)
        self.value_panels = ceil_div(mla.value_dim, LANES)
        values = tuple(
            Columns(
                "attn.kv_b",
                head * stride + mla.nope_dim,
                mla.value_dim,
                self.value_panels * LANES,
                **split.shard(stride),
            )
            for head in range(heads)
        )
        self.up_values = HeadMatrix(
            named("w_uv"), self.stored, self.dtype, mla.kv_rank, values, layers, head_panels=self.value_panels
        )

    def _attention(self, heads: int) -> Attention:
        panels, tokens = self.latent_panels + self.key_panels, self.shape.rows_are == "tokens"
        block = heads * self.shape.padded_rows if tokens else round_up(heads, 8)
        return Attention(
            operation="attend_latent_tokens" if tokens else "attend_latent",
            panels=panels,
            chains=latent_chains(heads),
            query_rows=panels * block,
            state_rows=(self.latent_panels + 2) * block,
            sight=Sight(),
            attributes={"heads": heads, "rank": self.mla.kv_rank, "panels": panels},
            shared_buffers=f"latent_{kind_number(self.mla, self.spec)}",
        )

    def matrices(self) -> tuple[Stream, ...]:
        q_b = () if self.mla.q_rank is None else (self.q_b,)
        return self.down, *q_b, self.up_keys, self.up_values, self.o

    def _slots(self, grain: Grain, stream: Stream) -> int:
        """Heads with those that fill the last tile."""
        return grain.tiles(stream) * grain.tile_units[stream.name]

    def declarations(self, grain: Grain) -> Declarations:
        mla, rows, named = self.mla, self.shape.padded_rows, self.place.named
        words = operand_words(rows, self.dtype)
        keys, values = self._slots(grain, self.up_keys), self._slots(grain, self.up_values)
        before = (
            *self.entering_buffers(grain),
            Buffer(named("q_nope"), WORK, keys * ceil_div(mla.nope_dim, LANES) * words),
            Buffer(named("q_rope"), WORK, self.heads * self.key_panels * rows),
            Buffer(named("q_absorbed"), WORK, keys * self.latent_panels * rows),
        )
        after = (
            Buffer(named("latents"), WORK, values * self.latent_panels * words),
            Buffer(named("values"), WORK, values * self.value_panels * rows),
            Buffer(named("attended"), WORK, ceil_div(self.heads * mla.value_dim, LANES) * words),
            Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
        )
        declared = Declarations(before) + self.cache.declarations(grain) + Declarations(after) + self.cache.staging()
        return declared if self.shared is None else declared + self.shared.declarations()

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return super().begin(grain) + (() if self.shared is None else self.shared.begin())

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named = self.shape.padded_rows, self.place.named
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        q, softmax, shared = whole[named("q")], whole[named("softmax")], self.shared
        own_q, own_softmax = (q, softmax) if shared is None else (shared.own_queries, shared.own_softmax)
        return (
            projection(named("down_latent"), self.down, self.source, named("projected"), grain, rows),
            Phase(named("token"), self._token, vectors=named("vectors"), values=self.values.token()),
            *self.query_phases(grain, whole),
            Phase(
                named("queries"),
                lambda site: self._queries(grain, self.projected_queries(whole), whole),
                values=self.values.queries(),
            ),
            self._each_head(grain, "absorb", self.up_keys, whole[named("q_nope")], whole[named("q_absorbed")]),
            Phase(named("gather"), lambda site: self._gather(whole, own_q), values=self.values.gathered(own_q)),
            *(shared.before(q) if shared is not None else ()),
            Phase(
                named("attend"),
                lambda site: self.cache.attend(grain, site),
                values=(KEPT,) if shared is not None else (self.values.mixed(softmax), KEPT),
            ),
            *(shared.behind(softmax, self.values.mixed(own_softmax)) if shared is not None else ()),
            Phase(
                named("outputs"),
                lambda site: self._outputs(grain, own_softmax, whole),
                values=self.values.outputs(),
            ),
            self._each_head(grain, "expand", self.up_values, whole[named("latents")], whole[named("values")]),
            Phase(named("join"), lambda site: self._join(whole), values=self.values.joined()),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )

    def _token(self, site: Site) -> tuple[Op, ...]:
        """What the cache keeps of the new token: its latent, normalised, and its shared key, turned."""
        mla = self.mla
        return (
            compute(
                "latent_token",
                {"y": self.entered("token"), "rope": self.rope, **norm_reads(site, "kv_a", mla.kv_norm)},
                {"kv": self.cache.new_token},
                rows=self.shape.padded_rows,
                rank=mla.kv_rank,
                rope_dim=mla.rope_dim,
                rotary=mla.rotary_dim,
                norm_eps=mla.kv_norm.eps,
                norm_kind=mla.kv_norm.kind,
            ),
        )

    def _queries(self, grain: Grain, projected: Region, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The heads' queries apart: what meets latents, and, turned, what meets shared keys."""
        named, mla = self.place.named, self.mla
        return (
            compute(
                "latent_queries",
                {"y": projected, "rope": self.rope},
                {"nope": whole[named("q_nope")], "turned": whole[named("q_rope")]},
                rows=self.shape.padded_rows,
                heads=self.heads,
                slots=self._slots(grain, self.up_keys),
                nope_dim=mla.nope_dim,
                rope_dim=mla.rope_dim,
                rotary=mla.rotary_dim,
                dtype=self.dtype,
            ),
        )

    def _gather(self, whole: dict[str, Region], out: Region) -> tuple[Op, ...]:
        """Absorbed and turned queries side by side, scaled, as the cache has latent and shared key."""
        named = self.place.named
        return (
            compute(
                "gather_queries",
                {"absorbed": whole[named("q_absorbed")], "turned": whole[named("q_rope")]},
                {"q": out},
                rows=self.shape.padded_rows,
                heads=self.heads,
                rank=self.mla.kv_rank,
                rope_dim=self.mla.rope_dim,
                scale=self.mla.score_scale,
                attributes=self.heads_first,
            ),
        )

    def _outputs(self, grain: Grain, softmax: Region, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The weighted mean of the latents, a head."""
        return (
            compute(
                "latent_outputs",
                {"state": softmax},
                {"out": whole[self.place.named("latents")]},
                rows=self.shape.padded_rows,
                heads=self.heads,
                slots=self._slots(grain, self.up_values),
                rank=self.mla.kv_rank,
                dtype=self.dtype,
                attributes=self.heads_first,
            ),
        )

    def _join(self, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The heads' values side by side, gated where there is a gate."""
        named = self.place.named
        return (
            compute(
                "join_values",
                {"y": whole[named("values")], "gate": self.entered("gate") if self.mla.output_gate else None},
                {"out": whole[named("attended")]},
                rows=self.shape.padded_rows,
                heads=self.heads,
                value_dim=self.mla.value_dim,
                dtype=self.dtype,
            ),
        )

    def _each_head(self, grain: Grain, name: str, stream: Stream, x: Region, out: Region) -> Phase:
        """out = x · stream, head by head, a tile of heads at a time."""
        heads, rows = grain.tile_units[stream.name], self.shape.padded_rows
        tiles = grain.tiles(stream)
        keys = stream is self.up_keys

        def tile(site: Site) -> tuple[Op, ...]:
            def part(region: Region) -> Region:
                size = region.rows // tiles
                return Region(region.storage, size, mul(site.tile, size))

            return (
                compute(
                    "each_head",
                    {"x": part(x), "w": site.weight},
                    {"out": part(out)},
                    rows=rows,
                    heads=heads,
                    depth=self.mla.nope_dim if keys else self.mla.kv_rank,
                    panels=self.latent_panels if keys else self.value_panels,
                    dtype=self.dtype,
                    format=self.dtype if keys else self.up_values.stored,
                ),
            )

        values = self.values.absorbed() if keys else self.values.expanded()
        return Phase(self.place.named(name), tile, stream=stream.name, values=values)
