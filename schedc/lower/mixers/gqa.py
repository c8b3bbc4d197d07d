"""Grouped-query attention: projections and heads; `caches` streams the keys and values past them."""

from __future__ import annotations

from schedc.ir.program import Buffer, Op, Region
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.stream import Attention, CacheStream
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
    ceil_div,
    round_up,
)
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.placement.heads import heads_of
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, Inputs, VectorItem


class GqaLowering:
    """`gqa` has the heads of a device: all, or those that the placement gives it."""

    def __init__(
        self, gqa: Gqa, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        self.split = heads_of(gqa, shape.devices, shape.placement)
        self.partial = self.split.is_split
        gqa = gqa.model_copy(update={"heads": self.split.query.each, "kv_heads": self.split.kv.each})
        self.gqa, self.spec, self.shape, self.place = gqa, spec, shape, place
        self.source, self.rope = source, rope
        self.dtype, stored = spec.quantization.operand_dtype, spec.quantization.format("attention")
        self.cache = CacheStream(attention(gqa), spec.kv.dtype, shape, place)
        self.output = place.named("attention_out")
        self.output_bias = "attn.o_bias" if gqa.bias.o else None
        splits = {"q": self.split.query, "k": self.split.kv, "v": self.split.kv}
        widths = {part: split.each * gqa.head_dim for part, split in splits.items()}
        self.qkv = Matrix(
            place.named("w_qkv"),
            stored,
            self.dtype,
            spec.hidden,
            tuple(
                Columns(f"attn.{part}", 0, widths[part], **split.shard(gqa.head_dim)) for part, split in splits.items()
            ),
            place.layers,
        )
        self.o = Matrix(
            place.named("w_o"),
            stored,
            self.dtype,
            widths["q"],
            (Columns("attn.o", 0, spec.hidden),),
            place.layers,
            (Inputs(0, widths["q"], **splits["q"].shard(gqa.head_dim)),) if self.partial else (),
        )
        self.splits = splits

    def matrices(self) -> tuple[Matrix, ...]:
        return self.qkv, self.o

    def vectors(self) -> tuple[VectorItem, ...]:
        """Biases of the heads, each head padded to whole panels, the norms of the heads, the output's bias."""
        gqa = self.gqa
        lanes = round_up(gqa.head_dim, LANES)
        items = [
            VectorItem(
                f"attn.{part}_bias",
                split.each * gqa.head_dim,
                block=gqa.head_dim,
                block_lanes=lanes,
                of=split.total * gqa.head_dim,
                **split.shard(gqa.head_dim),
            )
            for part, split in self.splits.items()
            if getattr(gqa.bias, part)
        ]
        if gqa.qk_norm is not None:
            offset = float(gqa.qk_norm.unit_offset)
            items += [VectorItem(f"attn.{side}_norm", gqa.head_dim, add=offset) for side in ("q", "k")]
            if gqa.qk_norm.bias:
                items += [VectorItem(f"attn.{side}_norm_bias", gqa.head_dim) for side in ("q", "k")]
        if gqa.bias.o:
            items.append(VectorItem("attn.o_bias", self.spec.hidden))
        return tuple(items)

    def declarations(self, grain: Grain) -> Declarations:
        gqa, rows, named = self.gqa, self.shape.padded_rows, self.place.named
        attended = ceil_div(gqa.heads * gqa.head_dim, LANES) * operand_words(rows, self.dtype)
        projected = Buffer(named("projected"), WORK, output_rows(self.qkv, grain, rows))
        results = (
            Buffer(named("attended"), WORK, attended),
            Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
        )
        return (
            Declarations((projected,)) + self.cache.declarations(grain) + Declarations(results) + self.cache.staging()
        )

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.begin(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.cache.prefetches(grain)

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.end(grain)

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named, dtype = self.shape.padded_rows, self.place.named, self.dtype
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        gqa = self.gqa

        def heads(site: Site) -> tuple[Op, ...]:
            head_vectors = [item.weight for item in self.vectors() if item.weight != self.output_bias]
            return (
                compute(
                    "split_heads",
                    reads={
                        "y": whole[named("projected")],
                        "rope": self.rope,
                        **{name.removeprefix("attn."): site.vector(name) for name in head_vectors},
                    },
                    writes={"q": whole[named("q")], "kv": whole[named("kv_row")]},
                    rows=rows,
                    heads=gqa.heads,
                    kv_heads=gqa.kv_heads,
                    head_dim=gqa.head_dim,
                    scale=gqa.score_scale,
                    rotary=gqa.rotary_dim,
                    norm_eps=gqa.qk_norm.eps if gqa.qk_norm else 0.0,
                    norm_kind=gqa.qk_norm.kind if gqa.qk_norm else "rms",
                ),
            )

        def join(site: Site) -> tuple[Op, ...]:
            return (
                compute(
                    "join_heads",
                    reads={"state": whole[named("softmax")]},
                    writes={"out": whole[named("attended")]},
                    rows=rows,
                    heads=gqa.heads,
                    kv_heads=gqa.kv_heads,
                    head_dim=gqa.head_dim,
                    dtype=dtype,
                ),
            )

        vectors = named("vectors")
        return (
            projection(named("qkv"), self.qkv, self.source, named("projected"), grain, rows),
            Phase(named("heads"), heads, vectors=vectors),
            Phase(named("attend"), lambda site: self.cache.attend(grain, site)),
            Phase(named("join"), join),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )


def attention(gqa: Gqa) -> Attention:
    """One chain of dots a kv head: its queries lie as rows below each other, padded to whole groups of 8."""
    panels = ceil_div(gqa.head_dim, LANES)
    block = gqa.kv_heads * round_up(gqa.heads // gqa.kv_heads, 8)
    return Attention(
        operation="attend",
        panels=gqa.kv_heads if gqa.head_dim <= LANES // 2 else 2 * panels * gqa.kv_heads,
        chains=gqa.kv_heads,
        query_rows=panels * block,
        state_rows=(panels + 2) * block,
        sight=Sight(gqa.window),
        attributes={
            "kv_heads": gqa.kv_heads,
            "group": gqa.heads // gqa.kv_heads,
            "head_dim": gqa.head_dim,
        },
        soft_cap=gqa.soft_cap or 0.0,
    )
