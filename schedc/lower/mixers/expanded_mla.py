"""Multi-head latent attention with a cache of keys and values of every head: multi-head attention from a latent.

    [Kh | Vh] = c·Wkvb of the new token alone, cached as [Kh | r] and Vh        softmax(s)·Vh

Neither queries nor outputs are projected for the cache's sake. A step reads heads · (key + value) numbers of every
earlier token instead of a latent and a shared key; arXiv 2405.04434, section 2.1.1.
"""

from __future__ import annotations

from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.caches.choose import STREAMS
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.stream import Attention
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import LANES, Declarations, Grain, Matrix, Phase, Site, StepShape, ceil_div, round_up
from schedc.lower.mixers.latent_projections import LatentProjections, kind_number, latent_chains, norm_reads
from schedc.lower.mixers.latent_values import ExpandedValues
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.values import KEPT
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns


class ExpandedMlaLowering(LatentProjections):
    """Every device has the keys and values of its own heads. Of `w_kv_b` those of all heads' keys come first."""

    def __init__(
        self, mla: Mla, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        super().__init__(mla, spec, shape, place, source, rope)
        stride, heads = mla.nope_dim + mla.value_dim, self.heads
        shard = self.split.shard(stride)
        columns = tuple(
            Columns("attn.kv_b", head * stride + first, width, **shard)
            for first, width in ((0, mla.nope_dim), (mla.nope_dim, mla.value_dim))
            for head in range(heads)
        )
        self.kv_b = Matrix(place.named("w_kv_b"), self.stored, self.dtype, mla.kv_rank, columns, place.layers)
        self.cache = STREAMS[shape.rows_are](self._attention(), spec.kv, shape, place)
        self.values = ExpandedValues(mla, self.split, shape, place, self.dtype)
        self.sizes: dict[str, Attribute] = {"rows": shape.padded_rows, "heads": heads}

    def _attention(self) -> Attention:
        mla, heads, tokens = self.mla, self.heads, self.shape.rows_are == "tokens"
        key_panels, value_panels = ceil_div(mla.head_dim, LANES), ceil_div(mla.value_dim, LANES)
        block = heads * self.shape.padded_rows if tokens else round_up(heads, 8)
        return Attention(
            operation="attend_expanded_tokens" if tokens else "attend_expanded",
            panels=heads * (key_panels + value_panels),
            chains=latent_chains(heads),
            query_rows=key_panels * block,
            state_rows=(value_panels + 2) * block,
            sight=Sight(),
            attributes={"heads": heads, "head_dim": mla.head_dim, "value_dim": mla.value_dim},
            shared_buffers=f"expanded_{kind_number(mla, self.spec)}",
        )

    def matrices(self) -> tuple[Matrix, ...]:
        q_b = () if self.mla.q_rank is None else (self.q_b,)
        return self.down, *q_b, self.kv_b, self.o

    def declarations(self, grain: Grain) -> Declarations:
        mla, rows, named = self.mla, self.shape.padded_rows, self.place.named
        words = operand_words(rows, self.dtype)
        before = (
            *self.entering_buffers(grain),
            Buffer(named("latent"), WORK, self.latent_panels * words),
            Buffer(named("shared_key"), WORK, self.key_panels * rows),
            Buffer(named("expanded"), WORK, output_rows(self.kv_b, grain, rows)),
        )
        after = (
            Buffer(named("attended"), WORK, ceil_div(self.heads * mla.value_dim, LANES) * words),
            Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
        )
        return Declarations(before) + self.cache.declarations(grain) + Declarations(after) + self.cache.staging()

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named = self.shape.padded_rows, self.place.named
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        return (
            projection(named("down_latent"), self.down, self.source, named("projected"), grain, rows),
            Phase(
                named("latent"),
                lambda site: self._latent(site, whole),
                vectors=named("vectors"),
                values=self.values.latent(),
            ),
            *self.query_phases(grain, whole),
            projection(named("kv_b"), self.kv_b, whole[named("latent")], named("expanded"), grain, rows),
            Phase(named("heads"), lambda site: self._heads(whole), values=self.values.heads_of_token()),
            Phase(
                named("attend"),
                lambda site: self.cache.attend(grain, site),
                values=(self.values.mixed_values(), KEPT),
            ),
            Phase(named("join"), lambda site: self._join(whole), values=self.values.joined()),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )

    def _latent(self, site: Site, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The new token's latent, normalised, and its shared key, turned."""
        mla, named = self.mla, self.place.named
        return (
            compute(
                "expanded_latent",
                {"y": self.entered("token"), "rope": self.rope, **norm_reads(site, "kv_a", mla.kv_norm)},
                {"latent": whole[named("latent")], "key": whole[named("shared_key")]},
                rows=self.shape.padded_rows,
                rank=mla.kv_rank,
                rope_dim=mla.rope_dim,
                rotary=mla.rotary_dim,
                norm_eps=mla.kv_norm.eps,
                norm_kind=mla.kv_norm.kind,
                dtype=self.dtype,
            ),
        )

    def _heads(self, whole: dict[str, Region]) -> tuple[Op, ...]:
        """What the cache keeps of the new token, and the queries, their ends turned, scaled."""
        mla, named = self.mla, self.place.named
        token = compute(
            "expanded_token",
            {"y": whole[named("expanded")], "key": whole[named("shared_key")]},
            {"kv": self.cache.new_token},
            attributes=self.sizes,
            nope_dim=mla.nope_dim,
            rope_dim=mla.rope_dim,
            value_dim=mla.value_dim,
        )
        queries = compute(
            "expanded_queries",
            {"y": self.projected_queries(whole), "rope": self.rope},
            {"q": whole[named("q")]},
            attributes=self.sizes | self._order,
            nope_dim=mla.nope_dim,
            rope_dim=mla.rope_dim,
            rotary=mla.rotary_dim,
            scale=mla.score_scale,
        )
        return token, queries

    @property
    def _order(self) -> dict[str, Attribute]:
        """The rows of a head are below each other where they are tokens of one sequence."""
        return {"heads_first": True} if self.shape.rows_are == "tokens" else {}

    def _join(self, whole: dict[str, Region]) -> tuple[Op, ...]:
        """The heads' values side by side, gated where there is a gate."""
        return (
            compute(
                "join_expanded",
                {
                    "state": whole[self.place.named("softmax")],
                    "gate": self.entered("gate") if self.mla.output_gate else None,
                },
                {"out": whole[self.place.named("attended")]},
                attributes=self.sizes | self._order,
                value_dim=self.mla.value_dim,
                dtype=self.dtype,
            ),
        )
