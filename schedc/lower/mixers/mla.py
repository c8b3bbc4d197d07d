"""Multi-head latent attention, absorbed: the up-projections of keys and values are applied to queries and outputs.

    q = norm(x·Wqa)·Wqb        qn·(c·Wuk)ᵀ = (qn·Wukᵀ)·cᵀ        softmax(s)·(c·Wuv) = (softmax(s)·c)·Wuv

So the heads attend to the cached latents c themselves, as the queries of one kv head; arXiv 2405.04434, section 2.1.2.
"""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const, mul
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
    Matrix,
    Phase,
    Prefetch,
    Site,
    StepShape,
    Stream,
    ceil_div,
    round_up,
)
from schedc.lower.head_streams import HeadMatrix, TransposedHeads
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.placement.heads import latent_split
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import Columns, HeadOutputs, Inputs, VectorItem


class MlaLowering:
    """`heads` are those of a device. Every device has the down-projections, which all heads share, and the whole cache,
    or its tiles in turn with the others.

    What enters is projected to one row of columns: latent | shared key | queries or their latent | gate.
    """

    def __init__(
        self, mla: Mla, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        split = latent_split(mla.heads, shape.devices, shape.placement)
        self.heads, self.partial = split.each, split.is_split
        self.mla, self.spec, self.shape, self.place = mla, spec, shape, place
        self.source, self.rope = source, rope
        self.dtype, stored = spec.quantization.operand_dtype, spec.quantization.format("attention")
        self.latent_panels, self.key_panels = ceil_div(mla.kv_rank, LANES), ceil_div(mla.rope_dim, LANES)
        tokens = shape.rows_are == "tokens"
        self.block = self.heads * shape.padded_rows if tokens else round_up(self.heads, 8)
        self.heads_first: dict[str, Attribute] = {"heads_first": True} if tokens else {}
        self.shared: SharedTiles | None = None
        turns = Turns(shape.devices if shape.placement.kv == "sequence" else 1)
        if turns.shared:
            sections = Sections(self.latent_panels + self.key_panels, self.latent_panels, self.block)
            self.shared = SharedTiles(shape, place, Group(shape.devices, shape.devices), sections, spec.kv.dtype)
        heads = (self.heads if tokens else self.block) * turns.devices if turns.shared else self.heads
        self.cache = STREAMS[shape.rows_are](self._attention(heads), spec.kv, shape, place, turns)
        self.output, self.output_bias = place.named("attention_out"), None
        heads, named, layers = self.heads, place.named, place.layers

        def by_head(weight: str) -> list[Columns]:
            """What of the heads' queries meets latents, then what meets shared keys."""
            shard = split.shard(mla.head_dim)
            parts = ((0, mla.nope_dim), (mla.nope_dim, mla.rope_dim))
            return [
                Columns(weight, head * mla.head_dim + first, width, **shard)
                for first, width in parts
                for head in range(heads)
            ]

        entering = {
            "token": [
                Columns("attn.kv_a", 0, mla.kv_rank, self.latent_panels * LANES),
                Columns("attn.kv_a", mla.kv_rank, mla.rope_dim, self.key_panels * LANES),
            ],
            "queries": by_head("attn.q") if mla.q_rank is None else [Columns("attn.q_a", 0, mla.q_rank)],
            "gate": [Columns("attn.gate", 0, heads * mla.value_dim, **split.shard(mla.value_dim))],
        }
        if not mla.output_gate:
            entering["gate"] = []
        self.panels = {part: ceil_div(sum(block.width for block in some), LANES) for part, some in entering.items()}
        columns = [block for part, some in entering.items() for block in _in_panels(some, self.panels[part])]
        self.down = Matrix(named("w_down_latent"), stored, self.dtype, spec.hidden, tuple(columns), layers)
        self.q_b = Matrix(named("w_q_b"), stored, self.dtype, mla.q_rank or 0, tuple(by_head("attn.q_b")), layers)
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
            named("w_uv"), stored, self.dtype, mla.kv_rank, values, layers, head_panels=self.value_panels
        )
        width = heads * mla.value_dim
        self.o = Matrix(
            named("w_o"),
            stored,
            self.dtype,
            width,
            (Columns("attn.o", 0, spec.hidden),),
            layers,
            (Inputs(0, width, **split.shard(mla.value_dim)),) if self.partial else (),
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
            shared_buffers=f"latent_{_kinds(self.spec).index(_kind(self.mla))}",
        )

    def matrices(self) -> tuple[Stream, ...]:
        q_b = () if self.mla.q_rank is None else (self.q_b,)
        return self.down, *q_b, self.up_keys, self.up_values, self.o

    def vectors(self) -> tuple[VectorItem, ...]:
        """The norms of the latents."""
        mla = self.mla
        norms = (("q_a", mla.q_norm, mla.q_rank), ("kv_a", mla.kv_norm, mla.kv_rank))
        return tuple(
            VectorItem(f"attn.{name}_norm{part}", width, add=add)
            for name, norm, width in norms
            if norm is not None and width is not None
            for part, present, add in (("", norm.weight, float(norm.unit_offset)), ("_bias", norm.bias, 0.0))
            if present
        )

    def _slots(self, grain: Grain, stream: Stream) -> int:
        """Heads with those that fill the last tile."""
        return grain.tiles(stream) * grain.tile_units[stream.name]

    def declarations(self, grain: Grain) -> Declarations:
        mla, rows, named = self.mla, self.shape.padded_rows, self.place.named
        words = operand_words(rows, self.dtype)
        keys, values = self._slots(grain, self.up_keys), self._slots(grain, self.up_values)
        q_latent: tuple[Buffer, ...] = ()
        if mla.q_rank is not None:
            q_latent = (
                Buffer(named("q_latent"), WORK, ceil_div(mla.q_rank, LANES) * words),
                Buffer(named("queries"), WORK, output_rows(self.q_b, grain, rows)),
            )
        before = (
            Buffer(named("projected"), WORK, output_rows(self.down, grain, rows)),
            *q_latent,
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
        return self.cache.begin(grain) + (() if self.shared is None else self.shared.begin())

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.cache.prefetches(grain)

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.end(grain)

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named, mla = self.shape.padded_rows, self.place.named, self.mla
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        queries = self._entered("queries")
        projected = queries if mla.q_rank is None else whole[named("queries")]
        q, softmax, shared = whole[named("q")], whole[named("softmax")], self.shared
        own_q, own_softmax = (q, softmax) if shared is None else (shared.own_queries, shared.own_softmax)
        return (
            projection(named("down_latent"), self.down, self.source, named("projected"), grain, rows),
            Phase(named("token"), self._token, vectors=named("vectors")),
            *(self._query_latent(grain, queries, whole) if mla.q_rank is not None else ()),
            Phase(named("queries"), lambda site: self._queries(grain, projected, whole)),
            self._each_head(grain, "absorb", self.up_keys, whole[named("q_nope")], whole[named("q_absorbed")]),
            Phase(named("gather"), lambda site: self._gather(whole, own_q)),
            *(shared.before(q) if shared is not None else ()),
            Phase(named("attend"), lambda site: self.cache.attend(grain, site)),
            *(shared.behind(softmax) if shared is not None else ()),
            Phase(named("outputs"), lambda site: self._outputs(grain, own_softmax, whole)),
            self._each_head(grain, "expand", self.up_values, whole[named("latents")], whole[named("values")]),
            Phase(named("join"), lambda site: self._join(whole)),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )

    def _entered(self, part: str) -> Region:
        """The columns of a part of what entered."""
        rows, before = self.shape.padded_rows, list(self.panels)[: list(self.panels).index(part)]
        first = sum(self.panels[name] for name in before)
        return Region(self.place.named("projected"), self.panels[part] * rows, Const(first * rows))

    def _token(self, site: Site) -> tuple[Op, ...]:
        """What the cache keeps of the new token: its latent, normalised, and its shared key, turned."""
        mla = self.mla
        return (
            compute(
                "latent_token",
                {"y": self._entered("token"), "rope": self.rope, **_norm_reads(site, "kv_a", mla.kv_norm)},
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
                {"y": whole[named("values")], "gate": self._entered("gate") if self.mla.output_gate else None},
                {"out": whole[named("attended")]},
                rows=self.shape.padded_rows,
                heads=self.heads,
                value_dim=self.mla.value_dim,
                dtype=self.dtype,
            ),
        )

    def _query_latent(self, grain: Grain, entered: Region, whole: dict[str, Region]) -> tuple[Phase, ...]:
        """The latent of the queries, normalised, and what they are projected to."""
        rows, named, norm = self.shape.padded_rows, self.place.named, self.mla.q_norm
        width = self.mla.q_rank
        assert width is not None

        def latent(site: Site) -> tuple[Op, ...]:
            out = {"out": whole[named("q_latent")]}
            if norm is None:
                return (compute("as_operand", {"x": entered}, out, rows=rows, columns=width, dtype=self.dtype),)
            reads = {"x": entered, **_norm_reads(site, "q_a", norm)}
            kind = {"eps": norm.eps, "kind": norm.kind}
            return (compute("norm", reads, out, attributes=kind, rows=rows, columns=width, dtype=self.dtype),)

        return (
            Phase(named("query_latent"), latent, vectors=named("vectors") if norm is not None else None),
            projection(named("q_b"), self.q_b, whole[named("q_latent")], named("queries"), grain, rows),
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

        return Phase(self.place.named(name), tile, stream=stream.name)


def _kind(mla: Mla) -> tuple[int, int, int]:
    """What the sizes of its tiles and groups follow from."""
    return mla.kv_rank, mla.rope_dim, mla.heads


def _kinds(spec: ModelSpec) -> list[tuple[int, int, int]]:
    """Every kind of latent attention in the model, in the order of the layers."""
    mixers = (at.block.mixer for at in spec.iter_layers())
    return list(dict.fromkeys(_kind(mixer) for mixer in mixers if isinstance(mixer, Mla)))


def latent_chains(heads: int) -> int:
    """Dots of eight heads each: what one sequence brings, measured by the registers it takes."""
    return ceil_div(heads, 8)


def _in_panels(blocks: list[Columns], panels: int) -> list[Columns]:
    """The last block padded, so that all end with a whole panel."""
    if not blocks:
        return []
    *before, last = blocks
    missing = panels * LANES - sum(block.width for block in blocks)
    return [*before, replace(last, pad_to=last.width + missing)]


def _norm_reads(site: Site, name: str, norm: Norm) -> dict[str, Region | None]:
    parts = {"weight": (norm.weight, ""), "bias": (norm.bias, "_bias")}
    return {
        part: site.vector(f"attn.{name}_norm{suffix}") if present else None for part, (present, suffix) in parts.items()
    }
