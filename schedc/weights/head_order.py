"""The order of the dimensions inside a head, and the sources that change it on the fly.

Rotation turns pairs of dimensions. Files and kernels differ in where the two of a pair stand: `half` has
(i, i + r/2), `adjacent` (2i, 2i + 1). Scores q·k do not change when q and k are reordered alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from schedc.spec.mixers import Mixer
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec
from schedc.weights.kept import Kept
from schedc.weights.source import Rows, WeightSource


def halves_from_adjacent(rotary_dim: int, head_dim: int) -> np.ndarray:
    """Where each dimension of a `half` head stands in an `adjacent` one."""
    turning = np.arange(rotary_dim).reshape(-1, 2).T.reshape(-1)
    return np.concatenate([turning, np.arange(rotary_dim, head_dim)])


def load_reordered(load: Callable[[Rows], np.ndarray], rows: Rows, order: np.ndarray) -> np.ndarray:
    """Rows of a weight whose heads are in `order`, of one whose heads are not: reads whole heads."""
    width = len(order)
    first, last = rows[0] // width, -(-rows[1] // width)
    heads = load((first * width, last * width))
    reordered = heads.reshape(last - first, width, *heads.shape[1:])[:, order].reshape(heads.shape)
    return reordered[rows[0] - first * width : rows[1] - first * width]


Q_AND_K = frozenset(f"attn.{side}{kind}" for side in "qk" for kind in ("", "_bias", "_norm", "_norm_bias"))


@dataclass(frozen=True)
class KernelOrder:
    """`source` with what turns in half order where the spec turns adjacent pairs."""

    source: WeightSource
    orders: dict[str, np.ndarray]

    def identity(self) -> str:
        return f"kernel order of {self.source.identity()}"

    def names(self) -> tuple[str, ...]:
        return self.source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.source.shape(name)

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        if name not in self.orders:
            return self.source.load(name, rows)
        rows = rows or (0, self.shape(name)[0])
        return load_reordered(lambda heads: self.source.load(name, heads), rows, self.orders[name])

    def format(self, name: str) -> str | None:
        return self.source.format(name)

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        """Outputs are reordered with their scales, which are kept by output."""
        if name not in self.orders:
            return self.source.numbers(name, rows)
        order, width = self.orders[name], len(self.orders[name])
        heads = rows[0] // width * width, -(-rows[1] // width) * width
        whole = self.source.numbers(name, heads)

        def reordered(section: str) -> np.ndarray:
            return load_reordered(lambda _: whole[section], rows, order)

        return {section: reordered(section) for section in whole}


@dataclass(frozen=True)
class Orders:
    """What a kernel reorders of one mixer: weights by their suffix, and the sides of its cache (None: as it is)."""

    weights: dict[str, np.ndarray]
    cache: tuple[np.ndarray | None, ...]
    values: dict[str, np.ndarray] = field(default_factory=dict)
    """Of values that the reference names: those of a kernel, head by head."""


def _of_gqa(mixer: Gqa) -> Orders:
    """Heads of q and k alike, with their biases and norms."""
    order = halves_from_adjacent(mixer.rotary_dim, mixer.head_dim)
    values = dict.fromkeys(("attn.q", "attn.k", "attn.queries", "attn.key"), order)
    return Orders(dict.fromkeys(sorted(Q_AND_K), order), (order, None), values)


def _of_mla(mixer: Mla) -> Orders:
    """The rotated end of every query, and the shared key behind the latent, or at the end of every expanded key."""
    turning = halves_from_adjacent(mixer.rope_dim, mixer.rope_dim)

    def behind(still: int) -> np.ndarray:
        return np.concatenate([np.arange(still), still + turning])

    queries = dict.fromkeys(("attn.q", "attn.q_b"), behind(mixer.nope_dim))
    weights, absorbed = {**queries, "attn.kv_a": behind(mixer.kv_rank)}, mixer.cache == "absorbed"
    values = {"attn.shared_key": turning, "attn.q_rope": turning, "attn.key": behind(mixer.nope_dim)}
    values["attn.queries"] = behind(mixer.kv_rank if absorbed else mixer.nope_dim)
    cache = (None, turning) if absorbed else (behind(mixer.nope_dim), None)
    return Orders(weights, cache, weights | values)


ORDERS: dict[str, Callable[..., Orders]] = {"gqa": _of_gqa, "mla": _of_mla}


def for_kernel(source: WeightSource, spec: ModelSpec) -> WeightSource:
    """The weights as kernels want them: every rotation turns halves."""
    orders: dict[str, np.ndarray] = {}
    names = set(source.names())
    for at in spec.iter_layers():
        if turns_adjacent(at.block.mixer):
            own = ORDERS[at.block.mixer.kind](at.block.mixer).weights
            found = {f"layers.{at.layer}.{suffix}": order for suffix, order in own.items()}
            orders |= {name: order for name, order in found.items() if name in names}
    return KernelOrder(source, orders)


def turns_adjacent(mixer: Mixer) -> bool:
    return mixer.rope is not None and mixer.rope.pairs == "adjacent"


def kernel_value(name: str, value: np.ndarray, mixer: Mixer) -> np.ndarray:
    """A value that the reference names, [rows, …], in the order of a kernel."""
    order = ORDERS[mixer.kind](mixer).values.get(name) if turns_adjacent(mixer) else None
    return value if order is None else value.reshape(len(value), -1, len(order))[..., order].reshape(value.shape)


def kernel_cache(kept: Kept, mixer: Mixer) -> Kept:
    """What a model's definition keeps of tokens, [..., width] a side, in the order that `for_kernel` weights give."""
    if not turns_adjacent(mixer):
        return kept
    orders = ORDERS[mixer.kind](mixer).cache
    return tuple(part if order is None else part[..., order] for part, order in zip(kept, orders, strict=True))
