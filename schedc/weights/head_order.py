"""The order of the dimensions inside a head, and the sources that change it on the fly.

Rotation turns pairs of dimensions. Files and kernels differ in where the two of a pair stand: `half` has
(i, i + r/2), `adjacent` (2i, 2i + 1). Scores q·k do not change when q and k are reordered alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedc.spec.mixers import Mixer
from schedc.spec.model import ModelSpec
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
    """`source` with the heads of q and k in half order where the spec turns adjacent pairs."""

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


def for_kernel(source: WeightSource, spec: ModelSpec) -> WeightSource:
    """The weights as kernels want them: every rotation turns halves."""
    orders: dict[str, np.ndarray] = {}
    for at in spec.iter_layers():
        order = _order(at.block.mixer)
        if order is not None:
            names = (f"layers.{at.layer}.{suffix}" for suffix in sorted(Q_AND_K))
            orders |= {name: order for name in names if name in source.names()}
    return KernelOrder(source, orders)


def _order(mixer: Mixer) -> np.ndarray | None:
    if mixer.rope is None or mixer.rope.pairs == "half":
        return None
    return halves_from_adjacent(mixer.rotary_dim, mixer.head_dim)


def kernel_keys(k: np.ndarray, mixer: Mixer) -> np.ndarray:
    """Keys [..., head_dim] of a model's definition, with their dimensions as `for_kernel` weights give them."""
    order = _order(mixer)
    return k if order is None else k[..., order]
