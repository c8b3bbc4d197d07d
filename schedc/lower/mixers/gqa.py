"""Grouped-query attention: projections and heads; `caches` streams the keys and values past them."""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import Const, Expr
from schedc.ir.program import Attribute, Buffer, Op, Region
from schedc.lower.caches.choose import STREAMS
from schedc.lower.caches.shared import Sections, SharedTiles
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.stream import Attention
from schedc.lower.caches.turns import Turns
from schedc.lower.collectives.group import Group
from schedc.lower.collectives.protocol import Collective, Exchanged, complete, occurrence_parity
from schedc.lower.collectives.registry import make_collective
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
from schedc.lower.mixers.gqa_values import HeadValues
from schedc.lower.norms import norm_kind
from schedc.lower.parts import WORK, Place, compute, operand_words
from schedc.lower.rows import position_of
from schedc.lower.values import KEPT, Piece, Value
from schedc.placement.caches import sharing_devices
from schedc.placement.heads import heads_of
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import Columns, Inputs, VectorItem


class GqaLowering:
    """`gqa` has the heads of a device: all, or those that the placement gives it.

    Devices that have the query heads of one kv head share its cache, if the placement says so: each has tiles in turn.
    """

    shared: SharedTiles | None

    def __init__(
        self, mixer: Gqa, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        self.split = heads_of(mixer, shape.devices, shape.placement)
        self.partial = self.split.is_split
        limits = {name: limit for name in ("window", "chunk") if (limit := getattr(mixer, name)) is not None}
        beyond = {name: None for name, limit in limits.items() if limit >= shape.context}
        gqa = mixer.model_copy(update={"heads": self.split.query.each, "kv_heads": self.split.kv.each} | beyond)
        self.gqa, self.spec, self.shape, self.place = gqa, spec, shape, place
        self.source, self.rope = source, rope
        self.dtype, stored = spec.quantization.operand_dtype, spec.quantization.format("attention")
        together, turns, self.shared = attention(gqa, shape), Turns(), None
        devices = sharing_devices(mixer, shape.devices, shape.placement)
        if devices > 1:
            group = Group(shape.devices, devices)
            together, turns = attention_of_all(gqa, shape, devices), Turns(devices, group.index())
            self.shared = SharedTiles(
                shape, place, group, sections(gqa, shape), spec.kv.dtype, shared_name(spec, mixer)
            )
        self.cache = STREAMS[shape.rows_are](together, spec.kv, shape, place, turns)
        self.output, self.meaning = place.named("attention_out"), "attn.o"
        self.output_bias = "attn.o_bias" if gqa.bias.o else None
        splits = {"q": self.split.query, "k": self.split.kv, "v": self.split.kv}
        widths = {part: split.each * gqa.head_dim for part, split in splits.items()}
        columns = [
            Columns(f"attn.{part}", 0, widths[part], **split.shard(gqa.head_dim)) for part, split in splits.items()
        ]
        self.gate_panel = ceil_div(sum(widths.values()), LANES)
        if gqa.output_gate:
            kept = self.gate_panel * LANES - widths["q"] - widths["k"]
            columns[-1] = replace(columns[-1], pad_to=kept)
            columns.append(Columns("attn.gate", 0, widths["q"], **self.split.query.shard(gqa.head_dim)))
        self.qkv = Matrix(place.named("w_qkv"), stored, self.dtype, spec.hidden, tuple(columns), place.layers)
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
        self.joint_norm = gqa.qk_norm is not None and gqa.qk_norm_over == "heads"
        self.norm_sum = norm_sum(shape, place) if self.joint_norm and self.partial else None

    def matrices(self) -> tuple[Matrix, ...]:
        return self.qkv, self.o

    def vectors(self) -> tuple[VectorItem, ...]:
        """What is read by `split_heads`, by `join_heads`, and the output's bias."""
        bias = (VectorItem("attn.o_bias", self.spec.hidden),) if self.gqa.bias.o else ()
        return (*self._split_vectors(), *self._join_vectors(), *bias)

    def _split_vectors(self) -> tuple[VectorItem, ...]:
        """Biases of the heads, each head padded to whole panels, and the norms of q and k."""
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
        heads = {"q": gqa.heads, "k": gqa.kv_heads}
        for side, count in heads.items():
            if gqa.qk_norm_over == "heads":
                shard = self.splits[side].shard(gqa.head_dim)
                block = {"block": gqa.head_dim, "block_lanes": lanes, "of": self.splits[side].total * gqa.head_dim}
                items += norm_items(gqa.qk_norm, f"attn.{side}_norm", count * gqa.head_dim, **block, **shard)
            else:
                items += norm_items(gqa.qk_norm, f"attn.{side}_norm", gqa.head_dim)
        return tuple(items)

    def _join_vectors(self) -> tuple[VectorItem, ...]:
        gqa, query = self.gqa, self.split.query
        sinks = (VectorItem("attn.sinks", gqa.heads, of=query.total, **query.shard()),) if gqa.sinks else ()
        return (*sinks, *norm_items(gqa.output_norm, "attn.output_norm", gqa.head_dim))

    def declarations(self, grain: Grain) -> Declarations:
        gqa, rows, named = self.gqa, self.shape.padded_rows, self.place.named
        attended = ceil_div(gqa.heads * gqa.head_dim, LANES) * operand_words(rows, self.dtype)
        projected = Buffer(named("projected"), WORK, output_rows(self.qkv, grain, rows))
        results = (
            Buffer(named("attended"), WORK, attended),
            Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
        )
        declared = Declarations((projected,)) + self.cache.declarations(grain)
        if self.joint_norm:
            declared += Declarations((Buffer(named("squares"), WORK, rows),))
        if self.norm_sum is not None:
            declared += self.norm_sum.declarations()
        if self.shared is not None:
            declared += self.shared.declarations()
        return declared + Declarations(results) + self.cache.staging()

    def _norm_phases(self, whole: dict[str, Region]) -> tuple[Phase, ...]:
        """Where q and k are normalised over all heads: the sums of their squares, over all devices."""
        collective, named, gqa = self.norm_sum, self.place.named, self.gqa
        if not self.joint_norm:
            return ()
        squares = whole[named("squares")]

        def parity(site: Site) -> Expr:
            return occurrence_parity(0, 1, 0, site.trip)

        def send(site: Site) -> tuple[Op, ...]:
            biases = {f"{side}_bias": site.vector(f"attn.{side}_bias") for side in "qk" if getattr(gqa.bias, side)}
            made = compute(
                "sum_squares",
                {"y": whole[named("projected")], **biases},
                {"out": squares},
                rows=self.shape.padded_rows,
                heads=gqa.heads,
                kv_heads=gqa.kv_heads,
                head_dim=gqa.head_dim,
                copies=1 if collective is None else self.split.kv.copies(self.shape.devices),
            )
            return (made, *(() if collective is None else collective.start(squares, parity(site))))

        def values(summed: bool) -> tuple[Value, ...]:
            """In lane 0 of q, in lane 1 of k."""
            lanes = {side: (Piece(0, 1, 0, 1, squares.rows, lane),) for lane, side in enumerate("qk")}
            return tuple(Value(f"attn.squares_{side}", squares.storage, lanes[side], summed=summed) for side in lanes)

        own = Phase(named("squares"), send, vectors=named("vectors"), values=values(collective is not None))
        if collective is None:
            return (own,)
        name = named("squares_sum")
        total = Phase(name, lambda site: complete(collective, squares, parity(site)), values=values(False))
        return own, total

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.begin(grain) + (() if self.shared is None else self.shared.begin())

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        return self.cache.prefetches(grain)

    def end(self, grain: Grain) -> tuple[Op, ...]:
        return self.cache.end(grain)

    def phases(self, grain: Grain) -> tuple[Phase, ...]:
        rows, named, dtype = self.shape.padded_rows, self.place.named, self.dtype
        whole = {buffer.name: Region(buffer.name, buffer.rows) for buffer in self.declarations(grain).buffers}
        gqa, shared, q, softmax = self.gqa, self.shared, whole[named("q")], whole[named("softmax")]
        own_q, own_softmax = (q, softmax) if shared is None else (shared.own_queries, shared.own_softmax)
        sizes: dict[str, Attribute] = {
            "rows": rows,
            "heads": gqa.heads,
            "kv_heads": gqa.kv_heads,
            "head_dim": gqa.head_dim,
        }
        split_norm = norm_attributes(gqa.qk_norm)
        if gqa.qk_norm is not None and gqa.qk_norm_after_rope:
            split_norm["norm_after_rope"] = True
        if self.joint_norm:
            split_norm |= {"all_heads": self.split.query.total, "all_kv_heads": self.split.kv.total}
        heads_first: dict[str, Attribute] = {"heads_first": True} if self.shape.rows_are == "tokens" else {}
        temperature: dict[str, Attribute] = {}
        positions: dict[str, list[Expr]] = {}
        if gqa.temperature is not None:
            temperature = {"temperature": gqa.temperature.scale, "interval": gqa.temperature.interval}
            positions = {"position": [position_of(self.shape, Const(row)) for row in range(self.shape.rows)]}

        def heads(site: Site) -> tuple[Op, ...]:
            return (
                compute(
                    "split_heads",
                    reads={
                        "y": whole[named("projected")],
                        "rope": self.rope,
                        "squares": whole[named("squares")] if self.joint_norm else None,
                        **operands(site, self._split_vectors()),
                    },
                    writes={"q": own_q, "kv": whole[named("kv_row")]},
                    scalars=positions,
                    attributes={
                        **sizes,
                        "scale": gqa.score_scale,
                        "rotary": gqa.rotary_dim,
                        **split_norm,
                        **temperature,
                        **heads_first,
                    },
                ),
            )

        def join(site: Site) -> tuple[Op, ...]:
            panels = ceil_div(gqa.heads * gqa.head_dim, LANES)
            gate = Region(named("projected"), panels * rows, Const(self.gate_panel * rows))
            return (
                compute(
                    "join_heads",
                    reads={
                        "state": own_softmax,
                        "gate": gate if gqa.output_gate else None,
                        **operands(site, self._join_vectors()),
                    },
                    writes={"out": whole[named("attended")]},
                    attributes={**sizes, "dtype": dtype, **norm_attributes(gqa.output_norm), **heads_first},
                ),
            )

        vectors = named("vectors")
        values = HeadValues(gqa, self.split, self.shape, self.place, query_block(gqa, self.shape))
        return (
            projection(named("qkv"), self.qkv, self.source, named("projected"), grain, rows),
            *self._norm_phases(whole),
            Phase(named("heads"), heads, vectors=vectors, values=values.split(own_q)),
            *(shared.before(q) if shared is not None else ()),
            Phase(
                named("attend"),
                lambda site: self.cache.attend(grain, site),
                values=(KEPT,) if shared is not None else (values.mixed(softmax), KEPT),
            ),
            *(shared.behind(softmax, values.mixed(own_softmax)) if shared is not None else ()),
            Phase(named("join"), join, vectors=vectors if self._join_vectors() else None, values=values.joined(dtype)),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )


def norm_sum(shape: StepShape, place: Place) -> Collective:
    """What sums the squares of q and k over devices."""
    group = Group(shape.devices, shape.devices)
    topology = shape.communication.topology
    return make_collective(
        "one_shot", Exchanged(place.named("qk_squares"), "all_reduce", group, topology, shape.padded_rows)
    )


def norm_items(norm: Norm | None, name: str, length: int, **part: int) -> tuple[VectorItem, ...]:
    """The vectors of a norm inside the mixer, whose weights are called `name` and `name`_bias; `part` as of an item."""
    if norm is None:
        return ()
    names = ((name, norm.weight, float(norm.unit_offset)), (f"{name}_bias", norm.bias, 0.0))
    return tuple(VectorItem(weight, length, add=add, **part) for weight, present, add in names if present)


def norm_attributes(norm: Norm | None) -> dict[str, Attribute]:
    return {} if norm is None else {"norm_kind": norm_kind(norm), "norm_eps": norm.eps}


def operands(site: Site, items: tuple[VectorItem, ...]) -> dict[str, Region | None]:
    """Vectors of the layer as operands, by the names of their weights."""
    return {item.weight.removeprefix("attn."): site.vector(item.weight) for item in items}


def attention(gqa: Gqa, shape: StepShape) -> Attention:
    """One chain of dots a kv head: its queries lie as rows below each other, padded to whole groups of 8.

    Where the rows are tokens of one sequence those of all rows do, and the rows are padded.
    """
    panels, block = ceil_div(gqa.head_dim, LANES), query_block(gqa, shape)
    return Attention(
        operation="attend_tokens" if shape.rows_are == "tokens" else "attend",
        panels=gqa.kv_heads if gqa.head_dim <= LANES // 2 else 2 * panels * gqa.kv_heads,
        chains=gqa.kv_heads,
        query_rows=panels * block,
        state_rows=(panels + 2) * block,
        sight=Sight(gqa.window, gqa.chunk),
        attributes={
            "kv_heads": gqa.kv_heads,
            "group": gqa.heads // gqa.kv_heads,
            "head_dim": gqa.head_dim,
        },
        soft_cap=gqa.soft_cap or 0.0,
    )


def query_block(gqa: Gqa, shape: StepShape) -> int:
    """Rows of a panel of a sequence's queries."""
    if shape.rows_are == "tokens":
        return gqa.heads * shape.padded_rows
    return gqa.kv_heads * round_up(gqa.heads // gqa.kv_heads, 8)


def attention_of_all(gqa: Gqa, shape: StepShape, devices: int) -> Attention:
    """Of the query heads of so many devices with equally many, as `gqa` has, of one kv head.

    A chain of dots is one of eight heads then: what one sequence brings, measured by the registers it takes.
    """
    heads = gqa.heads * devices
    return replace(attention(gqa.model_copy(update={"heads": heads}), shape), chains=ceil_div(heads, 8))


def sections(gqa: Gqa, shape: StepShape) -> Sections:
    """What a device sends of its heads of one kv head: of sequences its heads are fewer rows than lie there."""
    panels, block = ceil_div(gqa.head_dim, LANES), query_block(gqa, shape)
    return Sections(panels, panels, block, gqa.heads if shape.rows_are == "sequences" and gqa.heads < block else 0)


def shared_name(spec: ModelSpec, gqa: Gqa) -> str:
    """What layers with heads as many and as large exchange through."""
    kinds = list(dict.fromkeys(_sizes(m) for at in spec.iter_layers() if isinstance(m := at.block.mixer, Gqa)))
    number = kinds.index(_sizes(gqa))
    return f"shared_heads_{number}" if number else "shared_heads"


def _sizes(gqa: Gqa) -> tuple[int, int, int]:
    return gqa.heads, gqa.kv_heads, gqa.head_dim
