"""A cache with room for what the newest token sees: `[layer][row][place]`, where tile t lies in place t mod `tiles`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedc.ir.expr import Expr, add, mod, mul
from schedc.ir.program import Array
from schedc.lower.caches.shape import CacheShape
from schedc.lower.caches.sight import Sight
from schedc.lower.graph import StepShape, ceil_div
from schedc.placement.caches import sharing_devices
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import ModelSpec


@dataclass(frozen=True)
class Ring:
    """A tile is overwritten by the one `tiles` later, when nothing of it is in sight any more."""

    name: str
    layers: int
    rows: int
    tiles: int
    cache: CacheShape

    @property
    def array(self) -> Array:
        return Array(self.name, self.layers * self.rows * self.tiles * self.cache.tile, "state")

    def tile_row(self, trip: Expr, row: Expr, tile: Expr) -> Expr:
        """The first row of the `tile`-th tile of sequence `row` in the `trip`-th layer."""
        sequence = mul(add(mul(trip, self.rows), row), self.tiles * self.cache.tile)
        return add(sequence, mul(mod(tile, self.tiles), self.cache.tile))


def ring_tiles(sight: Sight, context: int, tokens: int) -> int:
    """Tiles of `tokens` that a token can see something of, its own among them; 0: as many as a context has, or more.

    A window of W ends anywhere in a tile, and reaches (W - 1) / T tiles back; chunks of whole tiles begin with one.
    """
    if not sight.limited:
        return 0
    if sight.chunk is not None and sight.chunk % tokens == 0:
        tiles = sight.chunk // tokens
    else:
        tiles = ceil_div((sight.window or sight.chunk or 1) - 1, tokens) + 1
    return tiles if tiles < ceil_div(context, tokens) else 0


def ring_tokens(spec: ModelSpec, mixer: Gqa, context: int, tokens: int) -> int:
    """Tokens of a sequence that a layer's cache has room for if it is a ring; 0: it is not, and has the context's."""
    if spec.kv.window != "ring":
        return 0
    return ring_tiles(Sight(mixer.window, mixer.chunk), context, tokens) * tokens


def ring_problems(spec: ModelSpec, shape: StepShape) -> Iterator[str]:
    """What a ring cannot do."""
    if spec.kv.window != "ring":
        return
    mixers = [at.block.mixer for at in spec.iter_layers() if isinstance(at.block.mixer, Gqa)]
    limited = [mixer for mixer in mixers if Sight(mixer.window, mixer.chunk).limited]
    if not limited:
        yield "kv.window: a ring is the cache of a layer with a window or chunks, and the model has none; use context"
    if shape.rows_are == "tokens":
        yield (
            "kv.window: rows are tokens of one sequence, and one that is not accepted would already have taken the "
            "place of a token in sight of the accepted ones; use context with them"
        )
    sharing = max((sharing_devices(mixer, shape.devices, shape.placement) for mixer in limited), default=1)
    if sharing > 1:
        yield (
            f"kv.window: {sharing} devices have the tiles of a window in turn by placement.kv: sequence, and a ring is "
            "one device's; use context, or placement.kv: heads"
        )
