"""A generated kernel with its weights and caches, ready to decode: interpreted on a CPU, compiled on a TPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.cache import CacheLayout, Kept, cache_layout, empty_cache, write_sequence
from schedc.weights.head_order import kernel_cache


class Decoder:
    """Steps of one kernel. The caches live on the device and are updated in place.

    `kernel` is the generated module, `weights` its weight arrays int32[rows, 128] by name, `rows` and `context`
    the step's shape. `interpret` are the interpreter's settings, None to compile for the default device.
    """

    def __init__(
        self,
        kernel: ModuleType,
        spec: ModelSpec,
        weights: Mapping[str, np.ndarray],
        rows: int,
        context: int,
        kv_tokens: int,
        interpret: Any = None,
    ) -> None:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        self.spec, self.rows, self.context = spec, rows, context
        self.kernel = kernel
        mesh = Mesh(np.array(jax.devices()[:1]), ("device",))
        self._step = kernel.decode_step(mesh, interpret=interpret if interpret is not None else False)
        # Placed as the step returns its state: a step is then compiled once.
        self._place = partial(jax.device_put, device=NamedSharding(mesh, PartitionSpec()))
        capacity = -(-context // kv_tokens) * kv_tokens
        self.caches = cache_layouts(spec, rows, capacity)
        self.state = {name: self._place(empty_cache(layout)) for name, layout in self.caches.items()}
        given = [name for name in kernel.ARGUMENTS if name not in kernel.STATE]
        self._weights = {name: self._place(np.asarray(weights[name])) for name in given if name in weights}

    def fill(self, row: int, layers: Sequence[Kept]) -> None:
        """Put a prefilled sequence into the cache: per layer what is kept of its tokens, such as k and v."""
        state = {name: np.array(value) for name, value in self.state.items()}
        for at, kept in zip(self.spec.iter_layers(), layers, strict=True):
            name = cache_name(self.spec, at.run, at.place)
            write_sequence(state[name], self.caches[name], at.trip, row, kernel_cache(kept, at.block.mixer))
        self.state = {name: self._place(value) for name, value in state.items()}

    def step(
        self, tokens: Sequence[int], positions: Sequence[int], active: Sequence[bool] | None = None
    ) -> dict[str, np.ndarray]:
        """One token a row. `ids` int32[rows] (-1 where inactive) and, if the kernel writes them, `logits` f32."""
        scalars = {
            "token": np.asarray(tokens, np.int32),
            "position": np.asarray(positions, np.int32),
            "active": np.asarray([True] * self.rows if active is None else active, np.int32),
        }
        given = scalars | self._weights | self.state
        results = dict(
            zip(self.kernel.OUTPUTS, self._step(*(given[name] for name in self.kernel.ARGUMENTS)), strict=True)
        )
        self.state = {name: results[name] for name in self.kernel.STATE}
        answer = {"ids": np.asarray(results["ids"])[: self.rows, 0]}
        if "logits" in results:
            answer["logits"] = self._logits(np.asarray(results["logits"]))
        return answer

    def _logits(self, words: np.ndarray) -> np.ndarray:
        """f32[rows, vocab] from panels of the padded rows."""
        padded = -(-self.rows // 8) * 8
        panels = words.view(np.float32).reshape(-1, padded, 128)
        return panels.transpose(1, 0, 2).reshape(padded, -1)[: self.rows, : self.spec.vocab]


def cache_name(spec: ModelSpec, run: int, place: int) -> str:
    """The kernel's name for the cache of one place of the pattern of one run."""
    single = len(spec.layers) == 1 and len(spec.layers[0].pattern) == 1
    return "kv" if single else f"kv_{run}_{place}"


def cache_layouts(spec: ModelSpec, rows: int, capacity: int) -> dict[str, CacheLayout]:
    layouts = {}
    for at in spec.iter_layers():
        repeat = spec.layers[at.run].repeat
        name = cache_name(spec, at.run, at.place)
        layouts[name] = cache_layout(at.block.mixer, repeat, rows, capacity, spec.kv.dtype)
    return layouts
