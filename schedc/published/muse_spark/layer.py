"""One layer of theirs, phase by phase: where each transfer is issued, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from schedc.ir.expr import Const, Counter, add, mod, mul
from schedc.ir.program import Array, Attribute, Buffer, Op, Phase, Region, Semaphore, SemaphoreRef, Start, Wait
from schedc.lower.collectives.protocol import complete
from schedc.lower.collectives.stages import Staged
from schedc.lower.graph import Declarations
from schedc.lower.parts import CACHE, WORK, compute
from schedc.published.muse_spark.exchanges import all_gather, all_reduce
from schedc.published.muse_spark.experts import CHOSEN, LATENT, MEMBERS, Experts
from schedc.published.muse_spark.prices import Prices
from schedc.published.muse_spark.tiles import LAYER, Tile, TileRing
from schedc.published.muse_spark.variant import TILE_ROWS, Variant

HIDDEN, HEADS, KV_HEADS, HEAD_DIM = 8192, 16, 2, 64
"""Heads are those of one device."""

KV_TOKENS, KV_ROWS = 512, 512
"""A tile of the cache, and its rows of 512 bytes: keys and values of two heads, bf16."""

SMALL_ROWS = 320
"""Norms, gates and the router's bias of a layer."""


def tiles_of(variant: Variant) -> tuple[Tile, ...]:
    """Of 2 MiB each; the router's are f32, whatever the others are."""
    wider = 1 if variant.dense == "bf16" else 2
    shapes = (
        ("qkv", 18, 8192, 1),
        ("o", 8, 1024, 8),
        ("router", 4, 2048, 2),
        ("pre", 4, 8192, 1),
        ("post", 4, 4096, 2),
    )
    tiles: list[Tile] = []
    for name, count, depth, panels in shapes:
        by = 1 if name == "router" else wider
        tiles += [Tile(name, TILE_ROWS, depth, panels * by)] * (count // by)
    return tuple(tiles)


def product(ring: TileRing, variant: Variant, number: int, x: Region, out: Region) -> Op:
    """The router is multiplied as bf16: f32 weights take no longer than that to be read from VMEM."""
    tile, dense = ring.tiles[number], variant.dense
    sizes: dict[str, Attribute] = {"rows": variant.padded_rows, "depth": tile.depth, "panels": tile.panels}
    as_bf16 = dense == "bf16" or tile.product == "router"
    form: dict[str, Attribute] = {"dtype": "bf16", "product": "bf16_direct"} if as_bf16 else {"dtype": dense}
    return compute("matmul", {"x": x, "w": ring.region(number)}, {"out": out}, attributes=sizes | form)


@dataclass(frozen=True)
class Layer:
    variant: Variant
    prices: Prices
    ring: TileRing

    @cached_property
    def experts(self) -> Experts:
        return Experts(self.variant, self.prices)

    @cached_property
    def attention_sum(self) -> Staged:
        return all_reduce("attention_sum", 512, self.variant.wire, self.variant.hierarchical)

    @cached_property
    def expert_sum(self) -> Staged:
        return all_reduce("expert_sum", self.experts.out_rows, self.variant.wire, self.variant.hierarchical)

    @cached_property
    def latent_parts(self) -> Staged:
        return all_gather("latent_parts", 32)

    @cached_property
    def output_parts(self) -> Staged:
        return all_gather("output_parts", 64)

    def declarations(self) -> Declarations:
        rows = self.variant.rows
        work = {
            "x": 512, "normed": 512, "projected": 144, "q": 128, "kv_row": 64, "softmax": 384, "attended": 64,
            "attention_out": 512, "logits": 16, "latent": 32, "latents": 256, "expert_in": 256, "choices": 16,
            "expert_total": 256, "output": 64, "outputs": 512, "small": SMALL_ROWS,
        }  # fmt: skip
        own = Declarations(
            (
                *(Buffer(name, WORK, size) for name, size in work.items()),
                Buffer("kv_tile", CACHE, KV_ROWS * rows),
            ),
            (
                Array("cache", self.variant.layers * rows * KV_ROWS * 8, "state"),
                Array("vectors", self.variant.layers * SMALL_ROWS, "weight"),
            ),
            semaphores=(Semaphore("kv"), Semaphore("kv_back"), Semaphore("small")),
        )
        parts = (self.attention_sum, self.expert_sum, self.latent_parts, self.output_parts)
        return sum((part.declarations() for part in parts), own + self.experts.declarations())

    def body(self) -> tuple[Op, ...]:
        return (*self._attention(), *self._router(), *self._experts())

    # The three parts

    def _attention(self) -> tuple[Op, ...]:
        rows, shape = self.variant.padded_rows, self._hidden
        heads: dict[str, Attribute] = {"rows": rows, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
        fetch = self._fetch_cache()
        small = Start(
            Region("vectors", SMALL_ROWS, mul(Counter(LAYER), SMALL_ROWS)),
            Region("small", SMALL_ROWS),
            SemaphoreRef("small"),
        )
        norm = compute("norm", {"x": X}, {"out": NORMED}, attributes=shape, kind="rms", dtype="bf16")
        split = compute("split_heads", {"y": PROJECTED}, {"q": Q, "kv": KV_ROW}, attributes=heads, norm_kind="rms")
        newest = tuple(
            compute(
                "merge_newest",
                {"new": KV_ROW},
                updates={"chunk": Region("kv_tile", 32, Const(row * KV_ROWS))},
                panels=2,
            )
            for row in range(self.variant.rows)
        )
        back = tuple(
            Start(Region("kv_tile", 32, Const(row * KV_ROWS)), self._cached(row, 32), SemaphoreRef("kv_back"))
            for row in range(self.variant.rows)
        )
        sizes: dict[str, Attribute] = {"kv_heads": KV_HEADS, "group": HEADS // KV_HEADS, "head_dim": HEAD_DIM}
        attend = compute(
            "attend", {"q": Q, "kv": self._kv}, {"state": SOFTMAX}, attributes=sizes,
            sequences=self.variant.rows, tokens=KV_TOKENS, dtype="bf16", first=True,
        )  # fmt: skip
        joined = compute(
            "join_heads", {"state": SOFTMAX, "gate": PROJECTED}, {"out": ATTENDED}, attributes=heads,
            norm_kind="rms", dtype="bf16",
        )  # fmt: skip
        arrived = Wait(SemaphoreRef("kv"), KV_ROWS * self.variant.rows)
        return (
            Phase("attention_norm", (small, *(fetch if self.variant.early_kv else ()), norm)),
            Phase("qkv_gate", self._products("qkv", NORMED, "projected")),
            Phase("heads", (split,)),
            Phase("attend", (*(() if self.variant.early_kv else fetch), arrived, *newest, *back, attend, joined)),
            Phase("o", self._products("o", ATTENDED, "attention_out")),
            Phase("attention_sum", (*self.attention_sum.start(OUT, ZERO), *complete(self.attention_sum, OUT, ZERO))),
            Phase("attention_residual", (Wait(SemaphoreRef("small"), SMALL_ROWS), *self._residual(OUT))),
        )

    def _router(self) -> tuple[Op, ...]:
        sizes: dict[str, Attribute] = {
            "experts": MEMBERS, "members": MEMBERS, "groups": 1, "top_k": CHOSEN,
            "sequences": self.variant.rows, "rows": self.variant.padded_rows,
        }  # fmt: skip
        logits = Region("logits", 16)
        route = compute(
            "route", {"logits": logits, "selection_bias": Region("small", 2)}, {"choices": Region("choices", 16)},
            attributes=sizes, sets={"ids": "chosen"},
        )  # fmt: skip
        norm = compute("norm", {"x": X}, {"out": NORMED}, attributes=self._hidden, kind="rms", dtype="bf16")
        router: list[Op] = []
        for number in self.ring.numbers("router"):
            dot = product(self.ring, self.variant, number, NORMED, logits)
            router += [self.ring.arrive(number), dot, *self.ring.refill(number)]
        settle_kv = Wait(SemaphoreRef("kv_back"), 32 * self.variant.rows)
        deferred = self.variant.defer_refills
        gathered = self._gathered(self.latent_parts, Region("latent", 32), Region("latents", 256))
        refills = tuple(op for number in self.ring.numbers("pre") for op in self.ring.refill(number))
        return (
            Phase("expert_norm", (norm,)),
            Phase("router", tuple(router)),
            Phase("route", (route, *self.experts.first(), settle_kv)),
            Phase("pre_expert", self._products("pre", NORMED, "latent", refilled=not deferred)),
            Phase("latent_gather", (*gathered, *(refills if deferred else ()))),
        )

    def _experts(self) -> tuple[Op, ...]:
        every, latent = CHOSEN * self.variant.rows, {"columns": LATENT}
        parts, total = Region("expert_parts", self.experts.out_rows), Region("expert_total", 256)
        normed_in = compute(
            "norm", {"x": Region("latents", 256)}, {"out": Region("expert_in", 256)}, attributes=self._latent,
            kind="rms", dtype="bf16",
        )  # fmt: skip
        norm = compute("norm_in_place", updates={"x": parts}, attributes=latent, rows=every, kind="rms_of_scaled")
        weighted = compute(
            "add_weighted", {"y": parts, "weight": Region("choices", 16)}, {"out": total}, attributes=latent, rows=every
        )
        operand = compute(
            "as_operand", {"x": total}, {"out": Region("expert_in", 256)}, attributes=self._latent, dtype="bf16"
        )
        outputs = Region("outputs", 512)
        return (
            Phase("latent_norm", (normed_in,)),
            Phase("experts", self.experts.loop()),
            Phase("expert_sum", (*self.expert_sum.start(parts, ZERO), *complete(self.expert_sum, parts, ZERO))),
            Phase("expert_join", (norm, weighted, operand)),
            Phase("post_expert", self._products("post", Region("expert_in", 256), "output")),
            Phase("output_gather", self._gathered(self.output_parts, Region("output", 64), outputs)),
            Phase("expert_residual", self._residual(outputs)),
        )

    # What several of them use

    @property
    def _hidden(self) -> dict[str, Attribute]:
        return {"rows": self.variant.padded_rows, "columns": HIDDEN}

    @property
    def _latent(self) -> dict[str, Attribute]:
        return {"rows": self.variant.padded_rows, "columns": LATENT}

    @property
    def _kv(self) -> Region:
        return Region("kv_tile", KV_ROWS * self.variant.rows)

    def _cached(self, row: int, rows: int) -> Region:
        offset = mul(Counter(LAYER), self.variant.rows * KV_ROWS * 8)
        return Region("cache", rows, add(offset, row * KV_ROWS * 8))

    def _fetch_cache(self) -> tuple[Op, ...]:
        return tuple(
            Start(self._cached(row, KV_ROWS), Region("kv_tile", KV_ROWS, Const(row * KV_ROWS)), SemaphoreRef("kv"))
            for row in range(self.variant.rows)
        )

    def _products(self, name: str, x: Region, out: str, refilled: bool = True) -> tuple[Op, ...]:
        numbers = self.ring.numbers(name)
        ops: list[Op] = []
        for number in numbers:
            rows = self.ring.tiles[number].panels * self.variant.padded_rows
            target = Region(out, rows, Const((number - numbers[0]) * rows))
            ops += [self.ring.arrive(number), product(self.ring, self.variant, number, x, target)]
            ops += self.ring.refill(number) if refilled else ()
        return tuple(ops)

    def _gathered(self, gather: Staged, part: Region, whole: Region) -> tuple[Op, ...]:
        parity = mod(Counter(LAYER), 2)
        return (*gather.start(part, parity), *complete(gather, whole, parity))

    def _residual(self, y: Region) -> tuple[Op, ...]:
        return (compute("residual_add_norm", {"y": y}, updates={"x": X}, attributes=self._hidden, kind="rms"),)


X, NORMED, PROJECTED, Q = Region("x", 512), Region("normed", 512), Region("projected", 144), Region("q", 128)
KV_ROW, SOFTMAX, ATTENDED, OUT = (
    Region("kv_row", 64),
    Region("softmax", 384),
    Region("attended", 64),
    Region("attention_out", 512),
)
ZERO = Const(0)
