"""What latent attention has in either form of its cache: the way down to latents, queries, the output."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const
from schedc.ir.program import Buffer, Op, Region
from schedc.lower.caches.stream import CacheStream
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import LANES, Grain, Matrix, Phase, Prefetch, Site, StepShape, ceil_div
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.values import operand
from schedc.placement.heads import latent_split
from schedc.placement.split import Split
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import Columns, Inputs, VectorItem


class LatentProjections:
    """`heads` are those of a device. Every device has the down-projections, which all heads share.

    What enters is projected to one row of columns: latent | shared key | queries or their latent | gate.
    """

    cache: CacheStream
    output_bias: str | None = None

    def __init__(
        self, mla: Mla, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        split = latent_split(mla.heads, shape.devices, shape.placement)
        self.split, self.heads, self.partial = split, split.each, split.is_split
        self.mla, self.spec, self.shape, self.place = mla, spec, shape, place
        self.source, self.rope = source, rope
        self.dtype, self.stored = spec.quantization.operand_dtype, spec.quantization.format("attention")
        self.latent_panels, self.key_panels = ceil_div(mla.kv_rank, LANES), ceil_div(mla.rope_dim, LANES)
        self.output, self.meaning = place.named("attention_out"), "attn.o"
        heads, named, layers = self.heads, place.named, place.layers
        entering = {
            "token": [
                Columns("attn.kv_a", 0, mla.kv_rank, self.latent_panels * LANES),
                Columns("attn.kv_a", mla.kv_rank, mla.rope_dim, self.key_panels * LANES),
            ],
            "queries": _by_head(mla, split, "attn.q") if mla.q_rank is None else [Columns("attn.q_a", 0, mla.q_rank)],
            "gate": [Columns("attn.gate", 0, heads * mla.value_dim, **split.shard(mla.value_dim))],
        }
        if not mla.output_gate:
            entering["gate"] = []
        self.panels = {part: ceil_div(sum(block.width for block in some), LANES) for part, some in entering.items()}
        columns = [block for part, some in entering.items() for block in _in_panels(some, self.panels[part])]
        self.down = Matrix(named("w_down_latent"), self.stored, self.dtype, spec.hidden, tuple(columns), layers)
        queries = tuple(_by_head(mla, split, "attn.q_b"))
        self.q_b = Matrix(named("w_q_b"), self.stored, self.dtype, mla.q_rank or 0, queries, layers)
        width = heads * mla.value_dim
        self.o = Matrix(
            named("w_o"),
            self.stored,
            self.dtype,
            width,
            (Columns("attn.o", 0, spec.hidden),),
            layers,
            (Inputs(0, width, **split.shard(mla.value_dim)),) if self.partial else (),
        )

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

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.begin(grain)

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.cache.prefetches(grain)

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.end(grain)

    def entering_buffers(self, grain: Grain) -> tuple[Buffer, ...]:
        """What is projected from the residual stream, and of the queries that have one their latent and themselves."""
        mla, rows, named = self.mla, self.shape.padded_rows, self.place.named
        projected = Buffer(named("projected"), WORK, output_rows(self.down, grain, rows))
        if mla.q_rank is None:
            return (projected,)
        return (
            projected,
            Buffer(named("q_latent"), WORK, ceil_div(mla.q_rank, LANES) * operand_words(rows, self.dtype)),
            Buffer(named("queries"), WORK, output_rows(self.q_b, grain, rows)),
        )

    def entered(self, part: str) -> Region:
        """The columns of a part of what entered."""
        rows, before = self.shape.padded_rows, list(self.panels)[: list(self.panels).index(part)]
        first = sum(self.panels[name] for name in before)
        return Region(self.place.named("projected"), self.panels[part] * rows, Const(first * rows))

    def projected_queries(self, whole: dict[str, Region]) -> Region:
        """Of every head, once `query_phases` have run."""
        return self.entered("queries") if self.mla.q_rank is None else whole[self.place.named("queries")]

    def query_phases(self, grain: Grain, whole: dict[str, Region]) -> tuple[Phase, ...]:
        """The latent of the queries, normalised, and what they are projected to; none where they have no latent."""
        rows, named, norm = self.shape.padded_rows, self.place.named, self.mla.q_norm
        width, entered = self.mla.q_rank, self.entered("queries")
        if width is None:
            return ()

        def latent(site: Site) -> tuple[Op, ...]:
            out = {"out": whole[named("q_latent")]}
            if norm is None:
                return (compute("as_operand", {"x": entered}, out, rows=rows, columns=width, dtype=self.dtype),)
            reads = {"x": entered, **norm_reads(site, "q_a", norm)}
            kind = {"eps": norm.eps, "kind": norm.kind}
            return (compute("norm", reads, out, attributes=kind, rows=rows, columns=width, dtype=self.dtype),)

        vectors = named("vectors") if norm is not None else None
        normed = operand("attn.q_latent", named("q_latent"), width, rows, self.dtype)
        return (
            Phase(named("query_latent"), latent, vectors=vectors, values=(normed,)),
            projection(named("q_b"), self.q_b, whole[named("q_latent")], named("queries"), grain, rows),
        )


def latent_chains(heads: int) -> int:
    """Dots of eight heads each: what one sequence brings, measured by the registers it takes."""
    return ceil_div(heads, 8)


def kind_number(mla: Mla, spec: ModelSpec) -> int:
    """Which of the model's kinds of latent attention this is, in the order of the layers: of equal number are those
    whose tiles and groups are of equal size."""

    def kind(mixer: Mla) -> tuple[object, ...]:
        """What the sizes follow from."""
        sizes = mixer.kv_rank, mixer.rope_dim, mixer.heads
        return sizes if mixer.cache == "absorbed" else (*sizes, mixer.nope_dim, mixer.value_dim)

    mixers = (at.block.mixer for at in spec.iter_layers())
    alike = (mixer for mixer in mixers if isinstance(mixer, Mla) and mixer.cache == mla.cache)
    return list(dict.fromkeys(map(kind, alike))).index(kind(mla))


def norm_reads(site: Site, name: str, norm: Norm) -> dict[str, Region | None]:
    """The vectors of the norm of a latent, as operands."""
    parts = {"weight": (norm.weight, ""), "bias": (norm.bias, "_bias")}
    return {
        part: site.vector(f"attn.{name}_norm{suffix}") if present else None for part, (present, suffix) in parts.items()
    }


def _by_head(mla: Mla, split: Split, weight: str) -> list[Columns]:
    """What of the heads' queries meets latents, or what is made of them, then what meets shared keys."""
    shard = split.shard(mla.head_dim)
    parts = ((0, mla.nope_dim), (mla.nope_dim, mla.rope_dim))
    return [
        Columns(weight, head * mla.head_dim + first, width, **shard)
        for first, width in parts
        for head in range(split.each)
    ]


def _in_panels(blocks: list[Columns], panels: int) -> list[Columns]:
    """The last block padded, so that all end with a whole panel."""
    if not blocks:
        return []
    *before, last = blocks
    missing = panels * LANES - sum(block.width for block in blocks)
    return [*before, replace(last, pad_to=last.width + missing)]
