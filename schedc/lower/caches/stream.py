"""Attention over a cache: the newest token is written to it, and its tiles stream past the queries.

Per layer: the tile of the newest token is fetched, the token is merged into it and its chunk
written back; that tile starts the online softmax and the older, full tiles follow through two
slots. What a tile holds, and what is done with it, is the mixer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from schedc.ir.expr import (
    Compare,
    Const,
    Counter,
    Element,
    Expr,
    add,
    floordiv,
    maximum,
    minimum,
    mod,
    mul,
    sub,
)
from schedc.ir.program import (
    Attribute,
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
from schedc.lower.caches.contiguous import Contiguous
from schedc.lower.caches.paged import Paged
from schedc.lower.caches.ring import Ring, ring_tiles
from schedc.lower.caches.shape import CacheShape
from schedc.lower.caches.sight import Sight
from schedc.lower.caches.turns import Turns
from schedc.lower.graph import Declarations, Grain, Prefetch, Site, StepShape, round_up
from schedc.lower.parts import CACHE, WORK, Place, compute, each_row
from schedc.lower.rows import is_active
from schedc.spec.storage import KvCache

CHAINS = 24
"""Chains of dots at once: enough independent ones to fill the MXU, few enough to stay in registers."""


def rows_at_once(rows: int, chains: int) -> int:
    """The largest divisor of `rows` whose sequences, of `chains` independent chains of dots each, go together."""
    return max(n for n in range(1, rows + 1) if rows % n == 0 and (n == 1 or n * chains <= CHAINS))


@dataclass(frozen=True)
class Attention:
    """How a mixer attends. `operation` folds a tile into the softmax:

    it reads `q` (`query_rows` rows a sequence) and `kv`, writes or updates `state` (`state_rows` rows a sequence),
    takes `low`, `high` of every sequence, and beside `attributes` first, sequences, tokens, soft_cap and dtype.
    """

    operation: str
    panels: int
    """Panels of 128 lanes that a token takes in the cache; `kv_row` holds the newest token's, padded to 8 rows."""
    chains: int
    """Independent chains of dots a sequence."""
    query_rows: int
    state_rows: int
    sight: Sight
    attributes: Mapping[str, Attribute]
    soft_cap: float = 0.0
    """Scores s are cap · tanh(s / cap); 0: as they are."""
    shared_buffers: str | None = None
    """Tiles pass through the buffers of this name, of all layers that give it, in whichever place of the pattern;
    None: through those of their own place."""


class CacheStream:
    """The mixer fills `q` and `kv_row` (named in its place), runs `attend`, and reads `softmax`."""

    def __init__(
        self, attention: Attention, kv: KvCache, shape: StepShape, place: Place, turns: Turns | None = None
    ) -> None:
        self.turns = turns or Turns()
        self.attention, self.kv, self.shape, self.place = attention, kv, shape, place
        self.dtype = kv.dtype
        self.group = rows_at_once(shape.sequences, attention.chains)

    def tiles(self, name: str) -> str:
        """The buffer `name` of tiles: of this place, or shared."""
        shared = self.attention.shared_buffers
        return self.place.named(name) if shared is None else f"{name}_{shared}"

    def cache(self, grain: Grain) -> CacheShape:
        return CacheShape(self.attention.panels, self.dtype, self.shape.context, grain.kv_tokens, self.turns.devices)

    def ring_tiles(self, grain: Grain) -> int:
        """Tiles of a ring; 0: the cache is none."""
        if self.kv.window != "ring":
            return 0
        return ring_tiles(self.attention.sight, self.shape.context, grain.kv_tokens)

    def written_late(self, grain: Grain) -> bool:
        """Whether the newest token is written back only when the older tiles have been read: which of the tiles in
        turn, or in a ring, are not the newest is more than the proof sees, though they never overlap."""
        return self.turns.shared or self.ring_tiles(grain) > 0

    def layout(self, grain: Grain) -> Contiguous | Paged | Ring:
        name, layers, cache = self.place.named("kv"), len(self.place.layers), self.cache(grain)
        tiles = self.ring_tiles(grain)
        if tiles:
            return Ring(name, layers, self.shape.sequences, tiles, cache)
        if self.kv.layout == "paged":
            return Paged(name, layers, self.shape.page_count(grain.kv_tokens, self.turns.devices), cache)
        return Contiguous(name, layers, self.shape.sequences, cache)

    @property
    def new_token(self) -> Region:
        """`[row][panel]`, f32: the newest tokens, as the mixer leaves them."""
        rows = self.shape.padded_rows * round_up(self.attention.panels, 8)
        return Region(self.place.named("kv_row"), rows)

    @property
    def queries(self) -> Region:
        return Region(self.place.named("q"), self.shape.padded_sequences * self.attention.query_rows)

    @property
    def softmax(self) -> Region:
        return Region(self.place.named("softmax"), self.shape.padded_sequences * self.attention.state_rows)

    def declarations(self, grain: Grain) -> Declarations:
        named, cache, attention = self.place.named, self.cache(grain), self.attention
        # In a limited sight the range is that of a difference: the bounds of `first` alone do not say it is never
        # negative.
        most = cache.max_tiles - (0 if self.turns.shared else 1)
        least = -most if attention.sight.limited else 0
        scalars = [Scalars(named("full"), self.shape.rows, least, most, "local")]
        if attention.sight.limited:
            scalars.append(Scalars(named("first"), self.shape.rows, 0, most, "local"))
        return Declarations(
            buffers=(
                *(Buffer(region.storage, WORK, region.rows) for region in (self.queries, self.new_token)),
                Buffer(self.tiles("kv_new"), CACHE, self.shape.rows * cache.tile),
                Buffer(self.tiles("kv_old"), CACHE, self.group * cache.tile, slots=grain.kv_slots),
                Buffer(self.softmax.storage, WORK, self.softmax.rows),
            ),
            arrays=(self.layout(grain).array,),
            scalars=tuple(scalars),
            semaphores=(
                Semaphore(named("kv_new_arrived"), self.shape.rows),
                Semaphore(named("kv_old_arrived"), grain.kv_slots * self.group),
                Semaphore(named("kv_written"), self.shape.rows),
            ),
        )

    def staging(self) -> Declarations:
        """Where a group's queries and softmax are staged, if there are several groups."""
        if self.group == self.shape.sequences:
            return Declarations()
        named, attention = self.place.named, self.attention
        return Declarations(
            (
                Buffer(named("q_group"), WORK, self.group * attention.query_rows),
                Buffer(named("softmax_group"), WORK, self.group * attention.state_rows),
            )
        )

    def begin(self, grain: Grain) -> tuple[Op, ...]:
        """Before the first layer: the cache's buffers are finite, the number of full tiles is known."""
        cache, named, sight = self.cache(grain), self.place.named, self.attention.sight
        cleared = [Region(self.tiles("kv_new"), self.shape.rows * cache.tile)]
        slots = [Const(slot) for slot in range(grain.kv_slots)]
        cleared += [Region(self.tiles("kv_old"), self.group * cache.tile, slot=slot) for slot in slots]
        if self.shape.padded_sequences != self.shape.sequences:
            cleared.append(self.softmax)

        def counts(row: Expr) -> tuple[Op, ...]:
            newest = floordiv(position(row), cache.tokens)
            older = self.turns.before(newest)
            ops: tuple[Op, ...] = ()
            if sight.limited:
                first = self.turns.before(sight.first_tile(position(row), cache.tokens))
                ops = (SetScalar(named("first"), row, first),)
                older = sub(older, Element(named("first"), row))
            limit = mul(Element("active", row), cache.max_tiles)
            return (*ops, SetScalar(named("full"), row, minimum(older, limit)))

        return (*(compute("zero", writes={"out": region}) for region in cleared), *each_row(self.shape.rows, counts))

    # Transfers

    def newest_row(self, grain: Grain, trip: Expr, row: Expr) -> Expr:
        """Where the tile of a sequence's newest token begins in HBM."""
        return self.layout(grain).tile_row(trip, row, self.turns.place(floordiv(position(row), grain.kv_tokens)))

    def holds(self, grain: Grain, row: Expr) -> tuple[Compare, ...]:
        """Whether this device has the tile of a sequence's newest token."""
        newest = floordiv(position(row), grain.kv_tokens)
        return (is_active(row), *self.turns.held(newest))

    def fetch_newest(self, grain: Grain, trip: Expr, row: Expr) -> Op:
        tile, named = self.cache(grain).tile, self.place.named
        return Start(
            Region(named("kv"), tile, self.newest_row(grain, trip, row)),
            Region(self.tiles("kv_new"), tile, mul(row, tile)),
            SemaphoreRef(named("kv_new_arrived"), row),
        )

    def fetch_older(self, grain: Grain, trip: Expr, row: Expr, within: Expr, number: Expr) -> Op:
        """Fetch the `number`-th older tile of sequence `row`, the `within`-th of its group, into its slot."""
        tile, named = self.cache(grain).tile, self.place.named
        slot = mod(number, grain.kv_slots)
        return Start(
            Region(named("kv"), tile, self.layout(grain).tile_row(trip, row, self.older(row, number))),
            Region(self.tiles("kv_old"), tile, mul(within, tile), slot),
            SemaphoreRef(named("kv_old_arrived"), add(mul(slot, self.group), within)),
        )

    def older(self, row: Expr, number: Expr) -> Expr:
        """The place of the `number`-th older tile of a sequence."""
        return add(Element(self.place.named("first"), row), number) if self.attention.sight.limited else number

    def start_older(self, grain: Grain, trip: Expr, group: Expr, number: Expr) -> tuple[Op, ...]:
        """Start one older tile of every sequence of a group that has so many."""

        def fetch(within: Expr) -> tuple[Op, ...]:
            row = add(mul(group, self.group), within)
            has = Compare("<", number, Element(self.place.named("full"), row))
            return (When((has,), (self.fetch_older(grain, trip, row, within, number),)),)

        return each_row(self.group, fetch)

    def start_first(self, grain: Grain, trip: Expr, group: Expr) -> tuple[Op, ...]:
        """Start as many older tiles as are on their way while one is used."""
        numbers = range(grain.kv_slots - 1)
        return tuple(op for number in numbers for op in self.start_older(grain, trip, group, Const(number)))

    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]:
        named = self.place.named

        def newest(trip: Expr) -> tuple[Op, ...]:
            return each_row(
                self.shape.rows, lambda row: (When(self.holds(grain, row), (self.fetch_newest(grain, trip, row),)),)
            )

        def older(trip: Expr) -> tuple[Op, ...]:
            return self.start_first(grain, trip, Const(0))

        return (
            Prefetch(named("kv_newest"), newest, named("mixer_norm"), named("attend")),
            Prefetch(named("kv_older"), older, named("mixer_norm"), named("attend")),
        )

    def end(self, grain: Grain) -> tuple[Op, ...]:
        """At the end of the layer: the newest tokens have reached HBM."""
        chunk, named = self.cache(grain).chunk, self.place.named
        return each_row(
            self.shape.rows,
            lambda row: (When(self.holds(grain, row), (Wait(SemaphoreRef(named("kv_written"), row), chunk),)),),
        )

    # Attention

    def attend(self, grain: Grain, site: Site) -> tuple[Op, ...]:
        """All sequences at once, or a loop over groups of them.

        A group's queries and softmax are staged at a fixed address: behind an address that depends on a loop the
        compiler does not interleave the heads' dots, which costs four to five times the cycles.
        """
        groups = self.shape.sequences // self.group
        named = self.place.named
        q = Region(named("q"), self.group * self.attention.query_rows)
        state = Region(named("softmax"), self.group * self.attention.state_rows)
        if groups == 1:
            return self._attend_group(grain, site.trip, Const(0), q, state)
        group = Counter(named("g"))
        staged_q, staged_state = replace(q, storage=named("q_group")), replace(state, storage=named("softmax_group"))
        later = When((Compare(">", group, Const(0)),), self.start_first(grain, site.trip, group))
        body = (
            later,
            compute("move", {"x": replace(q, offset=mul(group, q.rows))}, {"out": staged_q}),
            *self._attend_group(grain, site.trip, group, staged_q, staged_state),
            compute("move", {"x": staged_state}, {"out": replace(state, offset=mul(group, state.rows))}),
        )
        return (Loop(group.name, Const(groups), body),)

    def _attend_group(self, grain: Grain, trip: Expr, group: Expr, q: Region, state: Region) -> tuple[Op, ...]:
        cache, named, late = self.cache(grain), self.place.named, self.written_late(grain)
        number = Counter(named("t"))
        members = [add(mul(group, self.group), within) for within in range(self.group)]
        counts: list[Expr] = [Element(named("full"), row) for row in members]
        most = maximum(*counts, 0) if self.attention.sight.limited else maximum(*counts)

        def row_of(within: Expr) -> Expr:
            return add(mul(group, self.group), within)

        def arrived(within: Expr) -> tuple[Op, ...]:
            wait = Wait(SemaphoreRef(named("kv_new_arrived"), row_of(within)), cache.tile)
            return (When(self.holds(grain, row_of(within)), (wait,)),)

        def older_arrived(within: Expr) -> tuple[Op, ...]:
            semaphore = SemaphoreRef(named("kv_old_arrived"), add(mul(mod(number, grain.kv_slots), self.group), within))
            has = Compare("<", number, Element(named("full"), row_of(within)))
            return (When((has,), (Wait(semaphore, cache.tile),)),)

        def merged(within: Expr) -> tuple[Op, ...]:
            return (self._merge(grain, row_of(within)), *(() if late else written(within)))

        def written(within: Expr) -> tuple[Op, ...]:
            return (self._write_back(grain, trip, row_of(within)),)

        newest = [self._span_of_newest(cache, row) for row in members]
        older = []
        for row in members:
            low, _ = self._span(cache, row, self.turns.tile(self.older(row, number)))
            has = minimum(maximum(sub(Element(named("full"), row), number), 0), 1)
            older.append((low, mul(has, cache.tokens)))
        tiles = Region(self.tiles("kv_old"), self.group * cache.tile)
        return (
            *each_row(self.group, arrived),
            *each_row(self.group, merged),
            self._fold(
                grain,
                q,
                replace(tiles, storage=self.tiles("kv_new"), offset=mul(group, tiles.rows)),
                state,
                newest,
                True,
            ),
            Loop(
                number.name,
                most,
                (
                    *self.start_older(grain, trip, group, add(number, grain.kv_slots - 1)),
                    *each_row(self.group, older_arrived),
                    self._fold(grain, q, replace(tiles, slot=mod(number, grain.kv_slots)), state, older, False),
                ),
            ),
            *(each_row(self.group, written) if late else ()),
        )

    def _span(self, cache: CacheShape, row: Expr, tile: Expr) -> tuple[Expr, Expr]:
        """Which positions of a tile the newest token sees: low <= i < high, relative to the tile."""
        start = mul(tile, cache.tokens)
        high = add(sub(position(row), start), 1)
        sight = self.attention.sight
        return (sub(sight.lowest(position(row)), start), high) if sight.limited else (Const(0), high)

    def _span_of_newest(self, cache: CacheShape, row: Expr) -> tuple[Expr, Expr]:
        """The same of the newest token's tile: none on devices that do not have it."""
        low, high = self._span(cache, row, floordiv(position(row), cache.tokens))
        newest = floordiv(position(row), cache.tokens)
        return (low, mul(self.turns.has(newest), high)) if self.turns.shared else (low, high)

    def _chunk(self, grain: Grain, storage: str, first: Expr, row: Expr) -> Region:
        """The newest token's chunk of its tile, which begins at row `first` of `storage`."""
        cache = self.cache(grain)
        within_tile = floordiv(mod(position(row), cache.tokens), cache.chunk_tokens)
        return Region(storage, cache.chunk, add(first, mul(within_tile, cache.chunk)))

    def _merge(self, grain: Grain, row: Expr) -> Op:
        """Put the newest token into its tile."""
        cache = self.cache(grain)
        stride = round_up(cache.panels, 8)
        return compute(
            "merge_newest",
            reads={"new": Region(self.place.named("kv_row"), stride, mul(row, stride))},
            updates={"chunk": self._chunk(grain, self.tiles("kv_new"), mul(row, cache.tile), row)},
            scalars={"position": mod(position(row), cache.chunk_tokens)},
            panels=cache.panels,
            dtype=self.dtype,
        )

    def _write_back(self, grain: Grain, trip: Expr, row: Expr) -> Op:
        """Start writing the chunk of the newest token back."""
        chunk = self._chunk(grain, self.tiles("kv_new"), mul(row, self.cache(grain).tile), row)
        target = self._chunk(grain, self.place.named("kv"), self.newest_row(grain, trip, row), row)
        start = Start(chunk, target, SemaphoreRef(self.place.named("kv_written"), row))
        return When(self.holds(grain, row), (start,))

    def _fold(
        self, grain: Grain, q: Region, tiles: Region, state: Region, spans: list[tuple[Expr, Expr]], first: bool
    ) -> Op:
        return compute(
            self.attention.operation,
            reads={"q": q, "kv": tiles},
            writes={"state": state} if first else {},
            updates={} if first else {"state": state},
            scalars={"low": [low for low, _ in spans], "high": [high for _, high in spans]},
            attributes={
                "first": first,
                "sequences": self.group,
                **self.attention.attributes,
                "tokens": grain.kv_tokens,
                "soft_cap": self.attention.soft_cap,
                "dtype": self.dtype,
            },
        )


def position(sequence: Expr) -> Expr:
    return Element("position", sequence)
