"""Grouped-query attention over a KV cache in HBM.

The cache is `[layer][row][chunk][panel][8]` rows: a chunk is the tokens of 8 word rows, so the
tile of a transfer may be any number of chunks and one chunk is what the newest token writes
back. Per layer: the tile of the newest token is fetched, the token is merged into it and its
chunk written back; that tile starts the online softmax and the older, full tiles follow.
"""

from __future__ import annotations

from dataclasses import replace

from schedc.ir.expr import (
    Compare,
    Const,
    Counter,
    Element,
    Expr,
    add,
    as_expr,
    floordiv,
    maximum,
    minimum,
    mod,
    mul,
    sub,
)
from schedc.ir.program import (
    Array,
    Buffer,
    Loop,
    Op,
    Region,
    Scalars,
    Semaphore,
    SemaphoreRef,
    SetScalar,
    Start,
    Wait,
    When,
)
from schedc.lower.feed_forwards.dense import output_rows, projection
from schedc.lower.graph import (
    LANES,
    PER_WORD,
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
from schedc.lower.parts import CACHE, WORK, Place, compute, each_row, operand_words
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Columns, VectorItem

PAIRS = 24
"""Rows times kv heads attended at once: enough independent chains to fill the MXU, few enough to stay in registers."""


class CacheShape:
    """Sizes of the cache and its tiles, in rows of 512 bytes unless said."""

    def __init__(self, gqa: Gqa, kv_dtype: str, shape: StepShape, kv_tokens: int) -> None:
        panels = ceil_div(gqa.head_dim, LANES)
        self.panels = gqa.kv_heads if gqa.head_dim <= 64 else 2 * panels * gqa.kv_heads
        self.chunk_tokens = 8 * PER_WORD[kv_dtype]
        self.chunk = self.panels * 8
        self.tokens = kv_tokens
        self.tile_chunks = kv_tokens // self.chunk_tokens
        self.tile = self.tile_chunks * self.chunk
        self.max_tiles = ceil_div(shape.context, kv_tokens)
        self.row = self.max_tiles * self.tile


def rows_at_once(rows: int, kv_heads: int) -> int:
    """The largest divisor of `rows` whose sequences fit one attention group."""
    return max(n for n in range(1, rows + 1) if rows % n == 0 and (n == 1 or n * kv_heads <= PAIRS))


class GqaLowering:
    def __init__(
        self, gqa: Gqa, spec: ModelSpec, shape: StepShape, place: Place, source: Region, rope: Region | None
    ) -> None:
        self.gqa, self.spec, self.shape, self.place = gqa, spec, shape, place
        self.source, self.rope = source, rope
        self.dtype, self.kv_dtype = spec.quantization.weights, spec.kv.dtype
        self.group = rows_at_once(shape.rows, gqa.kv_heads)
        self.output = place.named("attention_out")
        self.output_bias = "attn.o_bias" if gqa.bias.o else None
        widths = {"q": gqa.heads * gqa.head_dim, "k": gqa.kv_heads * gqa.head_dim, "v": gqa.kv_heads * gqa.head_dim}
        self.qkv = Matrix(
            place.named("w_qkv"),
            self.dtype,
            spec.hidden,
            tuple(Columns(f"attn.{part}", 0, width) for part, width in widths.items()),
            place.layers,
        )
        self.o = Matrix(place.named("w_o"), self.dtype, widths["q"], (Columns("attn.o", 0, spec.hidden),), place.layers)
        self.widths = widths

    def matrices(self) -> tuple[Matrix, ...]:
        return self.qkv, self.o

    def vectors(self) -> tuple[VectorItem, ...]:
        """Biases of the heads, each head padded to whole panels, the norms of the heads, the output's bias."""
        gqa = self.gqa
        lanes = round_up(gqa.head_dim, LANES)
        items = [
            VectorItem(f"attn.{part}_bias", self.widths[part], block=gqa.head_dim, block_lanes=lanes)
            for part in ("q", "k", "v")
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

    def cache(self, grain: Grain) -> CacheShape:
        return CacheShape(self.gqa, self.kv_dtype, self.shape, grain.kv_tokens)

    def declarations(self, grain: Grain) -> Declarations:
        gqa, rows, named, cache = self.gqa, self.shape.padded_rows, self.place.named, self.cache(grain)
        q, softmax = self._attention_rows().values()
        operand = operand_words(rows, self.dtype)
        groups = self.shape.rows // self.group
        staged = (
            Buffer(named("q_group"), WORK, self.group * q),
            Buffer(named("softmax_group"), WORK, self.group * softmax),
        )
        # With a window the range is that of a difference: the bounds of `first` alone do not say it is never negative.
        least = 0 if gqa.window is None else 1 - cache.max_tiles
        scalars = [Scalars(named("full"), self.shape.rows, least, cache.max_tiles - 1, "local")]
        if gqa.window is not None:
            scalars.append(Scalars(named("first"), self.shape.rows, 0, cache.max_tiles - 1, "local"))
        return Declarations(
            buffers=(
                Buffer(named("projected"), WORK, output_rows(self.qkv, grain, rows)),
                Buffer(named("q"), WORK, rows * q),
                Buffer(named("kv_row"), WORK, rows * round_up(cache.panels, 8)),
                Buffer(named("kv_new"), CACHE, self.shape.rows * cache.tile),
                Buffer(named("kv_old"), CACHE, self.group * cache.tile, slots=2),
                Buffer(named("softmax"), WORK, rows * softmax),
                Buffer(named("attended"), WORK, ceil_div(gqa.heads * gqa.head_dim, LANES) * operand),
                Buffer(self.output, WORK, output_rows(self.o, grain, rows)),
                *(staged if groups > 1 else ()),
            ),
            arrays=(Array(named("kv"), len(self.place.layers) * self.shape.rows * cache.row, "state"),),
            scalars=tuple(scalars),
            semaphores=(
                Semaphore(named("kv_new_arrived"), self.shape.rows),
                Semaphore(named("kv_old_arrived"), 2 * self.group),
                Semaphore(named("kv_written"), self.shape.rows),
            ),
        )

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        """Before the first layer: the cache's buffers are finite, the number of full tiles is known."""
        cache, named = self.cache(grain), self.place.named
        declared = {buffer.name: buffer for buffer in self.declarations(grain).buffers}
        cleared = [Region(named("kv_new"), declared[named("kv_new")].rows)]
        cleared += [Region(named("kv_old"), declared[named("kv_old")].rows, slot=Const(slot)) for slot in (0, 1)]
        if self.shape.padded_rows != self.shape.rows:
            cleared.append(Region(named("softmax"), declared[named("softmax")].rows))

        def counts(row: Expr) -> tuple[Op, ...]:
            newest = floordiv(position(row), cache.tokens)
            newest = floordiv(position(row), cache.tokens)
            if self.gqa.window is None:
                older = newest
                ops: tuple[Op, ...] = ()
            else:
                first = floordiv(maximum(sub(position(row), self.gqa.window - 1), 0), cache.tokens)
                ops = (SetScalar(named("first"), row, first),)
                older = sub(newest, Element(named("first"), row))
            limit = mul(Element("active", row), cache.max_tiles)
            return (*ops, SetScalar(named("full"), row, minimum(older, limit)))

        return (*(compute("zero", writes={"out": region}) for region in cleared), *each_row(self.shape.rows, counts))

    # Addresses

    def cache_row(self, grain: Grain, trip: Expr, row: Expr, tile: Expr) -> Expr:
        cache = self.cache(grain)
        return add(mul(add(mul(trip, self.shape.rows), row), cache.row), mul(tile, cache.tile))

    def fetch_newest(self, grain: Grain, trip: Expr, row: Expr) -> Op:
        cache, named = self.cache(grain), self.place.named
        return Start(
            Region(named("kv"), cache.tile, self.cache_row(grain, trip, row, floordiv(position(row), cache.tokens))),
            Region(named("kv_new"), cache.tile, mul(row, cache.tile)),
            SemaphoreRef(named("kv_new_arrived"), row),
        )

    def fetch_older(self, grain: Grain, trip: Expr, row: Expr, within: Expr, tile: Expr) -> Op:
        """Fetch the `tile`-th older tile of sequence `row`, the `within`-th of its group, into slot tile % 2."""
        cache, named = self.cache(grain), self.place.named
        index = tile if self.gqa.window is None else add(Element(named("first"), row), tile)
        slot = mod(tile, 2)
        return Start(
            Region(named("kv"), cache.tile, self.cache_row(grain, trip, row, index)),
            Region(named("kv_old"), cache.tile, mul(within, cache.tile), slot),
            SemaphoreRef(named("kv_old_arrived"), add(mul(slot, self.group), within)),
        )

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        named = self.place.named

        def newest(trip: Expr) -> tuple[Op, ...]:
            return each_row(
                self.shape.rows, lambda row: (When((is_active(row),), (self.fetch_newest(grain, trip, row),)),)
            )

        def older(trip: Expr) -> tuple[Op, ...]:
            return self.start_older(grain, trip, Const(0), Const(0))

        return (
            Prefetch(named("kv_newest"), newest, named("mixer_norm"), named("attend")),
            Prefetch(named("kv_older"), older, named("mixer_norm"), named("attend")),
        )

    def start_older(self, grain: Grain, trip: Expr, group: Expr, tile: Expr) -> tuple[Op, ...]:
        """Start one older tile of every sequence of a group that has so many."""

        def fetch(within: Expr) -> tuple[Op, ...]:
            row = add(mul(group, self.group), within)
            has = Compare("<", tile, Element(self.place.named("full"), row))
            return (When((has,), (self.fetch_older(grain, trip, row, within, tile),)),)

        return each_row(self.group, fetch)

    # Phases

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
            Phase(named("attend"), lambda site: self.attend(grain, site)),
            Phase(named("join"), join),
            projection(named("o"), self.o, whole[named("attended")], self.output, grain, rows),
        )

    def end(self, grain: Grain) -> tuple[Op, ...]:
        """At the end of the layer: the newest tokens have reached HBM."""
        cache, named = self.cache(grain), self.place.named
        return each_row(
            self.shape.rows,
            lambda row: (When((is_active(row),), (Wait(SemaphoreRef(named("kv_written"), row), cache.chunk),)),),
        )

    def attend(self, grain: Grain, site: Site) -> tuple[Op, ...]:
        """All sequences at once, or a loop over groups of them.

        A group's queries and softmax are staged at a fixed address: behind an address that depends on a loop the
        compiler does not interleave the heads' dots, which costs four to five times the cycles.
        """
        groups = self.shape.rows // self.group
        q, state = (Region(name, self.group * rows) for name, rows in self._attention_rows().items())
        if groups == 1:
            return self.attend_group(grain, site.trip, Const(0), q, state)
        named = self.place.named
        group = Counter(named("g"))
        staged_q, staged_state = replace(q, storage=named("q_group")), replace(state, storage=named("softmax_group"))
        later = When((Compare(">", group, Const(0)),), self.start_older(grain, site.trip, group, Const(0)))
        body = (
            later,
            compute("move", {"x": replace(q, offset=mul(group, q.rows))}, {"out": staged_q}),
            *self.attend_group(grain, site.trip, group, staged_q, staged_state),
            compute("move", {"x": staged_state}, {"out": replace(state, offset=mul(group, state.rows))}),
        )
        return (Loop(group.name, Const(groups), body),)

    def _attention_rows(self) -> dict[str, int]:
        """Rows of the queries and of the softmax of one sequence."""
        panels = ceil_div(self.gqa.head_dim, LANES)
        block = self.gqa.kv_heads * round_up(self.gqa.heads // self.gqa.kv_heads, 8)
        return {self.place.named("q"): panels * block, self.place.named("softmax"): (panels + 2) * block}

    def attend_group(self, grain: Grain, trip: Expr, group: Expr, q: Region, state: Region) -> tuple[Op, ...]:
        cache, named = self.cache(grain), self.place.named
        tile = Counter(named("t"))
        members = [add(mul(group, self.group), within) for within in range(self.group)]
        counts: list[Expr] = [Element(named("full"), row) for row in members]
        most = maximum(*counts) if self.gqa.window is None else maximum(*counts, 0)

        def row_of(within: Expr) -> Expr:
            return add(mul(group, self.group), within)

        def arrived(within: Expr) -> tuple[Op, ...]:
            wait = Wait(SemaphoreRef(named("kv_new_arrived"), row_of(within)), cache.tile)
            return (When((is_active(row_of(within)),), (wait,)),)

        def older_arrived(within: Expr) -> tuple[Op, ...]:
            semaphore = SemaphoreRef(named("kv_old_arrived"), add(mul(mod(tile, 2), self.group), within))
            has = Compare("<", tile, Element(named("full"), row_of(within)))
            return (When((has,), (Wait(semaphore, cache.tile),)),)

        newest = [self.span(cache, row, floordiv(position(row), cache.tokens)) for row in members]
        older = []
        for row in members:
            index: Expr = tile if self.gqa.window is None else add(Element(named("first"), row), tile)
            low, _ = self.span(cache, row, index)
            has = minimum(maximum(sub(Element(named("full"), row), tile), 0), 1)
            older.append((low, mul(has, cache.tokens)))
        tiles = Region(named("kv_old"), self.group * cache.tile)
        return (
            *each_row(self.group, arrived),
            *each_row(self.group, lambda within: self.merge(grain, trip, row_of(within))),
            self.fold(
                grain, q, replace(tiles, storage=named("kv_new"), offset=mul(group, tiles.rows)), state, newest, True
            ),
            Loop(
                tile.name,
                most,
                (
                    *self.start_older(grain, trip, group, add(tile, 1)),
                    *each_row(self.group, older_arrived),
                    self.fold(grain, q, replace(tiles, slot=mod(tile, 2)), state, older, False),
                ),
            ),
        )

    def span(self, cache: CacheShape, row: Expr, tile: Expr) -> tuple[Expr, Expr]:
        """Which positions of a tile the newest token sees: low <= i < high, relative to the tile."""
        start = mul(tile, cache.tokens)
        high = add(sub(position(row), start), 1)
        if self.gqa.window is None:
            return Const(0), high
        return sub(sub(position(row), self.gqa.window - 1), start), high

    def merge(self, grain: Grain, trip: Expr, row: Expr) -> tuple[Op, ...]:
        """Put the newest token into its tile and start writing its chunk back."""
        cache, named = self.cache(grain), self.place.named
        within_tile = floordiv(mod(position(row), cache.tokens), cache.chunk_tokens)
        chunk = Region(named("kv_new"), cache.chunk, add(mul(row, cache.tile), mul(within_tile, cache.chunk)))
        stride = round_up(cache.panels, 8)
        newest = self.cache_row(grain, trip, row, floordiv(position(row), cache.tokens))
        target = Region(named("kv"), cache.chunk, add(newest, mul(within_tile, cache.chunk)))
        return (
            compute(
                "merge_newest",
                reads={"new": Region(named("kv_row"), stride, mul(row, stride))},
                updates={"chunk": chunk},
                scalars={"position": mod(position(row), cache.chunk_tokens)},
                panels=cache.panels,
                dtype=self.kv_dtype,
            ),
            When((is_active(row),), (Start(chunk, target, SemaphoreRef(named("kv_written"), row)),)),
        )

    def fold(
        self, grain: Grain, q: Region, tiles: Region, state: Region, spans: list[tuple[Expr, Expr]], first: bool
    ) -> Op:
        gqa = self.gqa
        return compute(
            "attend",
            reads={"q": q, "kv": tiles},
            writes={"state": state} if first else {},
            updates={} if first else {"state": state},
            scalars={"low": [low for low, _ in spans], "high": [high for _, high in spans]},
            first=first,
            sequences=self.group,
            kv_heads=gqa.kv_heads,
            group=gqa.heads // gqa.kv_heads,
            head_dim=gqa.head_dim,
            tokens=grain.kv_tokens,
            soft_cap=gqa.soft_cap or 0.0,
            dtype=self.kv_dtype,
        )


def position(row: Expr) -> Expr:
    return Element("position", row)


def is_active(row: Expr) -> Compare:
    return Compare(">", Element("active", row), as_expr(0))
