"""`Reference`: prefill and decode of a whole model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from schedc.reference.feed_forwards import APPLY as FEED_FORWARDS
from schedc.reference.mixers import APPLY as MIXERS
from schedc.reference.mixers import EMPTY_STATE, State
from schedc.reference.norm import apply_norm
from schedc.reference.residual import add_residual
from schedc.reference.weights import Dot, Weights, layer_weights, make_dot, outer_weights
from schedc.spec.model import Block, ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.residuals import Residual
from schedc.weights.source import WeightSource


@partial(jax.tree_util.register_dataclass, data_fields=["runs"], meta_fields=["capacity"])
@dataclass(frozen=True)
class Cache:
    """What the mixers keep of `rows` sequences of up to `capacity` tokens.

    `runs[run][place]`: arrays [repeat, rows, capacity, …] of that place of the pattern in all trips of the run.
    """

    runs: tuple[tuple[State, ...], ...]
    capacity: int

    def layer(self, spec: ModelSpec, layer: int) -> tuple[np.ndarray, ...]:
        """f32[rows, capacity, …]: k and v of a layer with attention."""
        at = next(at for at in spec.iter_layers() if at.layer == layer)
        return tuple(np.asarray(array[at.trip], np.float32) for array in self.runs[at.run][at.place])


def join_rows(caches: Sequence[Cache], capacity: int) -> Cache:
    """The sequences of all caches, one after another, with room for `capacity` tokens each."""

    def join(*arrays: jax.Array) -> jax.Array:
        room = [[(0, 0), (0, 0), (0, capacity - array.shape[2]), *[(0, 0)] * (array.ndim - 3)] for array in arrays]
        return jnp.concatenate([jnp.pad(a, pads) for a, pads in zip(arrays, room, strict=True)], axis=1)

    return Cache(jax.tree.map(join, *(cache.runs for cache in caches)), capacity)


class Reference:
    """`source`: the weights in the order of the spec (not those of `for_kernel`), loaded at the first call.

    Weights, inputs of projections and the cache are rounded to `dtype`; all else is f32.
    """

    def __init__(self, spec: ModelSpec, source: WeightSource, dtype: jax.typing.DTypeLike = jnp.float32) -> None:
        self.spec = spec
        self._source = source
        self._dtype = jnp.dtype(dtype)
        self._forward = jax.jit(partial(_forward, spec, make_dot(self._dtype)))

    def prefill(self, tokens: Sequence[int] | np.ndarray, capacity: int = 0) -> tuple[np.ndarray, Cache]:
        """Logits f32[tokens, vocab] and the cache of one sequence, with room for at least `capacity` tokens."""
        ids = np.asarray(tokens, np.int32)
        padded = max(16, 1 << (len(ids) - 1).bit_length())  # so that few lengths are compiled
        ids = np.pad(ids, (0, padded - len(ids)))
        logits, cache = self._forward(
            self._outer, self._layers, ids[None], np.arange(padded)[None], self.empty_cache(1, max(capacity, padded))
        )
        return np.asarray(logits)[0, : len(tokens)], cache

    def decode(
        self, tokens: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray, cache: Cache
    ) -> tuple[np.ndarray, Cache]:
        """One token a sequence: f32[rows, vocab], and the cache with these tokens at `positions`."""
        at = np.asarray(positions, np.int32)
        if at.max() >= cache.capacity:
            raise ValueError(
                f"position {at.max()} is beyond the cache's {cache.capacity} tokens; join_rows can grow it"
            )
        ids = np.asarray(tokens, np.int32)
        logits, cache = self._forward(self._outer, self._layers, ids[:, None], at[:, None], cache)
        return np.asarray(logits)[:, 0], cache

    def empty_cache(self, rows: int, capacity: int) -> Cache:
        runs = []
        for run in self.spec.layers:
            places = []
            for block in run.pattern:
                state = EMPTY_STATE[block.mixer.kind](block.mixer, rows, capacity, self._dtype)
                places.append(tuple(jnp.zeros((run.repeat, *array.shape), array.dtype) for array in state))
            runs.append(tuple(places))
        return Cache(tuple(runs), capacity)

    @cached_property
    def _outer(self) -> Weights:
        return outer_weights(self.spec, self._source, self._dtype)

    @cached_property
    def _layers(self) -> list[list[Weights]]:
        return layer_weights(self.spec, self._source, self._dtype)


def _forward(
    spec: ModelSpec,
    dot: Dot,
    outer: Weights,
    layers: list[list[Weights]],
    tokens: jax.Array,
    positions: jax.Array,
    cache: Cache,
) -> tuple[jax.Array, Cache]:
    """tokens and positions [rows, tokens] → f32[rows, tokens, vocab] and the cache with these tokens."""
    x = outer["embed"][tokens].astype(jnp.float32) * spec.embedding.multiplier
    if spec.embedding.norm is not None:
        x = apply_norm(spec.embedding.norm, outer, "embedding_norm.weight", "embedding_norm.bias", x)
    runs = []
    for run, weights, states in zip(spec.layers, layers, cache.runs, strict=True):

        def trip(
            x: jax.Array, layer: tuple[list[Weights], tuple[State, ...]], pattern: tuple[Block, ...] = run.pattern
        ) -> tuple[jax.Array, tuple[State, ...]]:
            new = []
            for block, block_weights, state in zip(pattern, *layer, strict=True):
                x, state = _block(block, spec.residual, block_weights, dot, x, positions, state)
                new.append(state)
            return x, tuple(new)

        x, new_states = jax.lax.scan(trip, x, (weights, states))
        runs.append(new_states)
    x = apply_norm(spec.final_norm, outer, "final_norm.weight", "final_norm.bias", x)
    logits = dot(x, outer["embed" if spec.embedding.tied else "head"])
    if spec.head.bias:
        logits = logits + outer["head_bias"]
    logits = logits * spec.head.multiplier
    if spec.head.soft_cap is not None:
        logits = spec.head.soft_cap * jnp.tanh(logits / spec.head.soft_cap)
    return logits, Cache(tuple(runs), cache.capacity)


def _block(
    block: Block,
    residual: Residual,
    weights: Weights,
    dot: Dot,
    x: jax.Array,
    positions: jax.Array,
    state: State,
) -> tuple[jax.Array, State]:
    def normed(norm: Norm | None, name: str, y: jax.Array) -> jax.Array:
        return y if norm is None else apply_norm(norm, weights, f"{name}.weight", f"{name}.bias", y)

    y = normed(block.pre_norm, "pre_mixer_norm", x)
    y, state = MIXERS[block.mixer.kind](block.mixer, weights, dot, y, positions, state)
    y = normed(block.post_mixer_norm, "post_mixer_norm", y)
    x = add_residual(residual, weights, "mixer", x, y)
    y = normed(block.pre_norm, "pre_feed_forward_norm", x)
    y = FEED_FORWARDS[block.feed_forward.kind](block.feed_forward, weights, dot, y)
    y = normed(block.post_feed_forward_norm, "post_feed_forward_norm", y)
    return add_residual(residual, weights, "feed_forward", x, y), state
