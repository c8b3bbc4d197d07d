"""Attention of consecutive tokens of one sequence over its cache: every tile is fetched once, for all of them.

Per layer: the tile of the first token is fetched, and the next one where the tokens reach into it; all tokens are
merged into the two, which lie one after the other, and the chunks they are in are written back. Tokens that are not
accepted are overwritten by the next step: the cache goes back by position alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedc.ir.expr import Compare, Const, Counter, Element, Expr, add, floordiv, maximum, minimum, mod, mul, sub
from schedc.ir.program import (
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
from schedc.lower.caches.shape import CacheShape
from schedc.lower.caches.stream import CacheStream, position
from schedc.lower.graph import Declarations, Grain, Prefetch, Site, ceil_div, round_up
from schedc.lower.parts import CACHE, WORK, compute
from schedc.lower.rows import COUNT

FIRST = Const(0)
"""The only sequence, and the row of its first token."""


@dataclass(frozen=True)
class Chunk:
    """The `number`-th chunk from that of the first token on, if it lies in the `tile`-th of the newest tiles."""

    tile: int
    number: int


class TokenStream(CacheStream):
    """As of one sequence; the mixer leaves the tokens in `kv_row`; q and softmax have the rows of a head together."""

    # Where the tokens are

    def newest(self, cache: CacheShape, tile: int) -> Expr:
        """The number of the first token's tile, or of the next."""
        return add(floordiv(position(FIRST), cache.tokens), tile)

    def within(self, cache: CacheShape) -> Expr:
        """The first token's place in its tile."""
        return mod(position(FIRST), cache.tokens)

    def first_chunk(self, cache: CacheShape) -> Expr:
        return floordiv(self.within(cache), cache.chunk_tokens)

    def offset(self, cache: CacheShape) -> Expr:
        """The first token's place in its chunk."""
        return mod(self.within(cache), cache.chunk_tokens)

    def touched(self, cache: CacheShape) -> int:
        """Chunks that the rows may lie in."""
        return ceil_div(cache.chunk_tokens - 1 + self.shape.rows, cache.chunk_tokens)

    def has_tokens(self, cache: CacheShape, tile: int) -> tuple[Compare, ...]:
        """Whether tokens lie in one of the newest tiles, and this device has it."""
        if tile == 0:
            some = Compare(">", Element(COUNT, FIRST), Const(0))
        else:
            some = Compare(">", add(self.within(cache), Element(COUNT, FIRST)), Const(cache.tokens))
        return (some, *self.turns.held(self.newest(cache, tile)))

    def chunks(self, cache: CacheShape) -> Iterator[tuple[Chunk, tuple[Compare, ...]]]:
        """Every chunk that tokens may be in, and when they are."""
        in_tile = cache.tokens // cache.chunk_tokens
        for tile in (0, 1):
            for number in range(tile, self.touched(cache)):
                if tile == 0 and number >= in_tile:
                    continue
                conditions = list(self.has_tokens(cache, tile))
                if number > 0:
                    end = add(self.offset(cache), Element(COUNT, FIRST))
                    conditions.append(Compare(">", end, Const(number * cache.chunk_tokens)))
                    place = add(self.first_chunk(cache), number)
                    conditions.append(Compare("<" if tile == 0 else ">=", place, Const(in_tile)))
                yield Chunk(tile, number), tuple(conditions)

    # Storage

    def declarations(self, grain: Grain) -> Declarations:
        named, cache, attention = self.place.named, self.cache(grain), self.attention
        limited = attention.sight.limited
        most = cache.max_tiles - (0 if self.turns.shared else 1)
        scalars = [Scalars(named("full"), 1, -most if limited else 0, most, "local")]
        if limited:
            scalars.append(Scalars(named("first"), 1, 0, most, "local"))
        return Declarations(
            buffers=(
                *(Buffer(region.storage, WORK, region.rows) for region in (self.queries, self.new_token)),
                Buffer(self.tiles("kv_new"), CACHE, 2 * cache.tile),
                Buffer(self.tiles("kv_old"), CACHE, cache.tile, slots=grain.kv_slots),
                Buffer(self.softmax.storage, WORK, self.softmax.rows),
            ),
            arrays=(self.layout(grain).array,),
            scalars=tuple(scalars),
            semaphores=(
                Semaphore(named("kv_new_arrived"), 2),
                Semaphore(named("kv_old_arrived"), grain.kv_slots),
                Semaphore(named("kv_written"), len(tuple(self.chunks(cache)))),
            ),
        )

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        """Before the first layer: the cache's buffers are finite, the number of full tiles is known."""
        cache, named, sight = self.cache(grain), self.place.named, self.attention.sight
        cleared = [Region(self.tiles("kv_new"), 2 * cache.tile)]
        slots = [Const(slot) for slot in range(grain.kv_slots)]
        cleared += [Region(self.tiles("kv_old"), cache.tile, slot=slot) for slot in slots]
        older = self.turns.before(self.newest(cache, 0))
        ops: list[Op] = [compute("zero", writes={"out": region}) for region in cleared]
        if sight.limited:
            ops.append(
                SetScalar(named("first"), FIRST, self.turns.before(sight.first_tile(position(FIRST), cache.tokens)))
            )
            older = sub(older, Element(named("first"), FIRST))
        limit = mul(minimum(Element(COUNT, FIRST), 1), cache.max_tiles)
        return (*ops, SetScalar(named("full"), FIRST, minimum(older, limit)))

    # Transfers

    def tile_of(self, cache: CacheShape, tile: int) -> Region:
        """One of the two newest tiles in VMEM."""
        return Region(self.tiles("kv_new"), cache.tile, Const(tile * cache.tile))

    def tile_at(self, grain: Grain, trip: Expr, tile: int) -> Expr:
        """Where it begins in HBM."""
        return self.layout(grain).tile_row(trip, FIRST, self.turns.place(self.newest(self.cache(grain), tile)))

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        named, cache = self.place.named, self.cache(grain)

        def newest(trip: Expr) -> tuple[Op, ...]:
            return tuple(
                When(
                    self.has_tokens(cache, tile),
                    (
                        Start(
                            Region(named("kv"), cache.tile, self.tile_at(grain, trip, tile)),
                            self.tile_of(cache, tile),
                            SemaphoreRef(named("kv_new_arrived"), Const(tile)),
                        ),
                    ),
                )
                for tile in (0, 1)
            )

        def older(trip: Expr) -> tuple[Op, ...]:
            return self.start_first(grain, trip, FIRST)

        return (
            Prefetch(named("kv_newest"), newest, named("mixer_norm"), named("attend")),
            Prefetch(named("kv_older"), older, named("mixer_norm"), named("attend")),
        )

    def end(self, grain: Grain) -> tuple[Op, ...]:
        """At the end of the layer: the tokens have reached HBM."""
        cache = self.cache(grain)
        return tuple(
            When(conditions, (Wait(SemaphoreRef(self.place.named("kv_written"), Const(index)), cache.chunk),))
            for index, (_, conditions) in enumerate(self.chunks(cache))
        )

    # Attention

    def attend(self, grain: Grain, site: Site) -> tuple[Op, ...]:
        cache, named = self.cache(grain), self.place.named
        number = Counter(named("t"))
        count = Element(named("full"), FIRST)
        arrived = [
            When(
                self.has_tokens(cache, tile),
                (Wait(SemaphoreRef(named("kv_new_arrived"), Const(tile)), cache.tile),),
            )
            for tile in (0, 1)
        ]
        slot = mod(number, grain.kv_slots)
        old = Region(self.tiles("kv_old"), cache.tile, slot=slot)
        spans = self.spans(cache, self.turns.tile(self.older(FIRST, number)))
        has = Compare("<", number, count)
        older = (
            *self.start_older(grain, site.trip, FIRST, add(number, grain.kv_slots - 1)),
            When((has,), (Wait(SemaphoreRef(named("kv_old_arrived"), slot), cache.tile),)),
            self.fold(grain, old, spans if self.attention.sight.limited else None, False),
        )
        written = self.write_back(grain, site.trip)
        return (
            *arrived,
            self.merge(cache),
            *(() if self.turns.shared else written),
            self.fold(grain, self.tile_of(cache, 0), self.spans_of_newest(cache), True),
            When(
                self.has_tokens(cache, 1),
                (self.fold(grain, self.tile_of(cache, 1), self.spans(cache, self.newest(cache, 1)), False),),
            ),
            Loop(number.name, maximum(count, 0) if self.attention.sight.limited else count, older),
            *(written if self.turns.shared else ()),
        )

    def spans(self, cache: CacheShape, tile: Expr) -> list[tuple[Expr, Expr]]:
        """Which positions of a tile each row sees: low <= i < high, relative to the tile."""
        start, sight = mul(tile, cache.tokens), self.attention.sight
        found: list[tuple[Expr, Expr]] = []
        for row in range(self.shape.rows):
            at = add(position(FIRST), row)
            low = sub(sight.lowest(at), start) if sight.limited else Const(0)
            found.append((low, add(sub(at, start), 1)))
        return found

    def spans_of_newest(self, cache: CacheShape) -> list[tuple[Expr, Expr]]:
        """The same of the first token's tile: none on devices that do not have it."""
        newest = self.newest(cache, 0)
        spans = self.spans(cache, newest)
        return [(low, mul(self.turns.has(newest), high)) for low, high in spans] if self.turns.shared else spans

    def merge(self, cache: CacheShape) -> Op:
        """Put the tokens into their tiles."""
        rows, stride = self.touched(cache) * cache.chunk, round_up(cache.panels, 8)
        return compute(
            "merge_tokens",
            reads={"new": Region(self.new_token.storage, self.shape.padded_rows * stride)},
            updates={"chunks": Region(self.tiles("kv_new"), rows, mul(self.first_chunk(cache), cache.chunk))},
            scalars={"offset": self.offset(cache), "count": Element(COUNT, FIRST)},
            rows=self.shape.padded_rows,
            panels=cache.panels,
            dtype=self.dtype,
        )

    def write_back(self, grain: Grain, trip: Expr) -> tuple[Op, ...]:
        """Start writing the chunks of the tokens back."""
        cache = self.cache(grain)

        def start(index: int, chunk: Chunk, conditions: tuple[Compare, ...]) -> Op:
            here = mul(add(self.first_chunk(cache), chunk.number), cache.chunk)
            there = add(self.tile_at(grain, trip, chunk.tile), sub(here, chunk.tile * cache.tile))
            moved = Start(
                Region(self.tiles("kv_new"), cache.chunk, here),
                Region(self.place.named("kv"), cache.chunk, there),
                SemaphoreRef(self.place.named("kv_written"), Const(index)),
            )
            return When(conditions, (moved,))

        return tuple(start(index, *found) for index, found in enumerate(self.chunks(cache)))

    def fold(self, grain: Grain, tile: Region, spans: list[tuple[Expr, Expr]] | None, first: bool) -> Op:
        """Without spans every row sees all of the tile."""
        scalars = {} if spans is None else {"low": [low for low, _ in spans], "high": [high for _, high in spans]}
        return compute(
            self.attention.operation,
            reads={"q": self.queries, "kv": tile},
            writes={"state": self.softmax} if first else {},
            updates={} if first else {"state": self.softmax},
            scalars=scalars,
            attributes={
                "first": first,
                "rows": self.shape.padded_rows,
                **self.attention.attributes,
                "tokens": grain.kv_tokens,
                "soft_cap": self.attention.soft_cap,
                "dtype": self.dtype,
            },
        )
