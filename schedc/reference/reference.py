"""`Reference`: prefill and decode of a whole model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from schedc.reference.feed_forwards import APPLY as FEED_FORWARDS
from schedc.reference.feed_forwards.router import GIVEN_WINNERS
from schedc.reference.mixers import APPLY as MIXERS
from schedc.reference.mixers import EMPTY_STATE, State
from schedc.reference.norm import apply_norm
from schedc.reference.notes import EACH, Notes
from schedc.reference.residuals import RESIDUALS
from schedc.reference.weights import Dot, Weights, layer_weights, make_dot, outer_weights
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.model import Block, Half, ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.residuals import Residual
from schedc.weights.kept import Kept, Recurrent, kept_of_row
from schedc.weights.source import WeightSource


@partial(jax.tree_util.register_dataclass, data_fields=["runs"], meta_fields=["capacity"])
@dataclass(frozen=True)
class Cache:
    """What the mixers keep of `rows` sequences of up to `capacity` tokens.

    `runs[run][place]`: arrays [repeat, rows, capacity, …] of that place of the pattern in all trips of the run, or a
    `Recurrent` of arrays [repeat, rows, …], which has no axis of tokens.
    """

    runs: tuple[tuple[State, ...], ...]
    capacity: int

    def layers(self, spec: ModelSpec) -> list[Kept]:
        """Of every layer what is kept of all rows: f32[rows, capacity, …] a side, or a `Recurrent` of f32[rows, …]."""

        def trip(state: State, trip: int) -> Kept:
            kept: Kept = jax.tree.map(lambda array: np.asarray(array[trip], np.float32), state)
            return kept

        return [trip(self.runs[at.run][at.place], at.trip) for at in spec.iter_layers()]

    def sequence(self, spec: ModelSpec, row: int, tokens: int) -> list[Kept]:
        """Of every layer what is kept of the first `tokens` of a row, which are all the tokens that it has."""
        return [kept_of_row(kept, row, tokens) for kept in self.layers(spec)]


@dataclass(frozen=True)
class Noted:
    """Named values of a step (`notes.py`), f32 or int32: of every layer, and of what is outside of the layers.

    [rows, …] each; of experts [experts, rows, …].
    """

    layers: tuple[dict[str, np.ndarray], ...]
    outer: dict[str, np.ndarray]


def join_rows(caches: Sequence[Cache], capacity: int) -> Cache:
    """The sequences of all caches, one after another, with room for `capacity` tokens each."""

    def grown(array: jax.Array) -> jax.Array:
        return jnp.pad(array, [(0, 0), (0, 0), (0, capacity - array.shape[2]), *[(0, 0)] * (array.ndim - 3)])

    def join(*states: State) -> State:
        roomy = [state if isinstance(state, Recurrent) else tuple(map(grown, state)) for state in states]
        joined: State = jax.tree.map(lambda *arrays: jnp.concatenate(arrays, axis=1), *roomy)
        return joined

    places = [
        [join(*states) for states in zip(*run, strict=True)] for run in zip(*(c.runs for c in caches), strict=True)
    ]
    return Cache(tuple(map(tuple, places)), capacity)


class Reference:
    """`source`: the weights in the order of the spec (not those of `for_kernel`), loaded at the first call.

    Weights, inputs of projections and the cache are rounded to `dtype`; all else is f32.
    """

    def __init__(self, spec: ModelSpec, source: WeightSource, dtype: jax.typing.DTypeLike = jnp.float32) -> None:
        self.spec = spec
        self._source = source
        self._dtype = jnp.dtype(dtype)
        forward = partial(_forward, spec, make_dot(self._dtype))
        self._forward = jax.jit(lambda *given: forward(*given)[:2])
        self._layer_outputs = jax.jit(lambda *given: forward(*given)[2])
        self._with_outputs = jax.jit(lambda *given: forward(*given)[:3])
        self._with_notes = jax.jit(partial(forward, noted=True))

    def prefill(self, tokens: Sequence[int] | np.ndarray, capacity: int = 0) -> tuple[np.ndarray, Cache]:
        """Logits f32[tokens, vocab] and the cache of one sequence, with room for at least `capacity` tokens."""
        logits, cache = self._forward(*self._whole(tokens, capacity))
        return np.asarray(logits)[0, : len(tokens)], cache

    def layer_outputs(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """f32[layers, tokens, hidden]: what every layer leaves in the residual stream of one sequence.

        Of block attention residuals it is the sum of its block so far.
        """
        runs = [np.asarray(run)[..., 0, : len(tokens), :] for run in self._layer_outputs(*self._whole(tokens, 0))]
        return np.concatenate([run.reshape(-1, *run.shape[2:]) for run in runs])

    def _whole(self, tokens: Sequence[int] | np.ndarray, capacity: int) -> tuple[Any, ...]:
        """What `_forward` takes of one sequence from its beginning."""
        padded = max(16, 1 << (len(tokens) - 1).bit_length())  # so that few lengths are compiled
        ids = np.pad(np.asarray(tokens, np.int32), (0, padded - len(tokens)))
        at = np.arange(padded)[None]
        empty = self.empty_cache(1, max(capacity, padded))
        return self._outer, self._layers, ids[None], at, at < len(tokens), empty

    def decode(
        self, tokens: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray, cache: Cache
    ) -> tuple[np.ndarray, Cache]:
        """One token a sequence: f32[rows, vocab], and the cache with these tokens at `positions`."""
        logits, cache = self._forward(*self._one_token(tokens, positions, cache))
        return np.asarray(logits)[:, 0], cache

    def decode_with_outputs(
        self, tokens: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray, cache: Cache
    ) -> tuple[np.ndarray, Cache, np.ndarray]:
        """As `decode`, and f32[layers, rows, hidden]: what every layer leaves in the stream, as `layer_outputs`."""
        logits, cache, runs = self._with_outputs(*self._one_token(tokens, positions, cache))
        outputs = [np.asarray(run)[..., 0, :] for run in runs]
        return np.asarray(logits)[:, 0], cache, np.concatenate([run.reshape(-1, *run.shape[2:]) for run in outputs])

    def decode_noted(
        self,
        tokens: Sequence[int] | np.ndarray,
        positions: Sequence[int] | np.ndarray,
        cache: Cache,
        winners: Mapping[int, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, Cache, np.ndarray, Noted]:
        """As `decode_with_outputs`, and all named values.

        `winners`: of layers with experts int32[rows, top_k], who wins whatever the scores are; -1: who has the best.
        """
        weights, by_layer, *given = self._one_token(tokens, positions, cache)
        routed = self._routed(by_layer, len(tokens), winners or {})
        logits, cache, runs, (layers, outer) = self._with_notes(weights, routed, *given)
        outputs = np.concatenate([np.asarray(run)[..., 0, :].reshape(-1, len(tokens), run.shape[-1]) for run in runs])

        def of_rows(name: str, value: Any) -> np.ndarray:
            """Without the axis of tokens, of which there is one."""
            return np.asarray(value).squeeze(2 if EACH in name else 1)

        noted = tuple(
            {name: of_rows(name, value[at.trip]) for name, value in layers[at.run][at.place].items()}
            for at in self.spec.iter_layers()
        )
        outside = {name: of_rows(name, value) for name, value in outer.items()}
        return np.asarray(logits)[:, 0], cache, outputs, Noted(noted, outside)

    def _routed(self, layers: list[list[Weights]], rows: int, winners: Mapping[int, np.ndarray]) -> list[list[Weights]]:
        """The weights of all layers with who wins, so that one program is compiled, whoever it is."""
        given: list[list[Weights]] = [[dict(weights) for weights in run] for run in layers]
        for run, places in enumerate(given):
            for place, weights in enumerate(places):
                feed_forward = self.spec.layers[run].pattern[place].feed_forward
                if isinstance(feed_forward, Moe):
                    own = np.full((rows, feed_forward.top_k), -1, np.int32)
                    here = [at.layer for at in self.spec.iter_layers() if (at.run, at.place) == (run, place)]
                    each = [winners.get(layer, own) for layer in here]
                    weights[GIVEN_WINNERS] = jnp.asarray(np.stack(each)[:, :, None], jnp.int32)
        return given

    def _one_token(
        self, tokens: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray, cache: Cache
    ) -> tuple[Any, ...]:
        at = np.asarray(positions, np.int32)
        if at.max() >= cache.capacity:
            raise ValueError(
                f"position {at.max()} is beyond the cache's {cache.capacity} tokens; join_rows can grow it"
            )
        ids = np.asarray(tokens, np.int32)
        real = np.ones((len(ids), 1), bool)
        return self._outer, self._layers, ids[:, None], at[:, None], real, cache

    def empty_cache(self, rows: int, capacity: int) -> Cache:
        runs = []
        for run in self.spec.layers:
            places = []
            for block in run.pattern:
                state = EMPTY_STATE[block.mixer.kind](block.mixer, rows, capacity, self._dtype)
                places.append(
                    jax.tree.map(lambda array, n=run.repeat: jnp.zeros((n, *array.shape), array.dtype), state)
                )
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
    real: jax.Array,
    cache: Cache,
    noted: bool = False,
) -> tuple[jax.Array, Cache, list[jax.Array], tuple[Any, ...]]:
    """tokens and positions [rows, tokens] → f32[rows, tokens, vocab] and the cache with these tokens.

    Of every run also what its layers leave in the stream, f32[repeat, places, rows, tokens, hidden]; and, if they are
    `noted`, the named values: [run][place] → name → [repeat, …], and those outside of the layers.
    `real` bool[rows, tokens]: the others are padding behind a row's last token.
    """
    x = outer["embed"][tokens].astype(jnp.float32) * spec.embedding.multiplier
    if spec.embedding.norm is not None:
        x = apply_norm(spec.embedding.norm, outer, "embedding_norm.weight", "embedding_norm.bias", x)
    note = Notes({} if noted else None)
    note("embedded", x)
    residual = RESIDUALS[spec.residual.kind]
    stream = residual.start(spec.residual, x, spec.num_layers)
    runs, outputs, of_runs, first = [], [], [], 0
    for run, weights, states in zip(spec.layers, layers, cache.runs, strict=True):

        def trip(
            stream: Any,
            given: tuple[jax.Array, list[Weights], tuple[State, ...]],
            pattern: tuple[Block, ...] = run.pattern,
        ) -> tuple[Any, tuple[tuple[State, ...], jax.Array, tuple[dict[str, jax.Array], ...]]]:
            layer, *places = given
            new, left, of_places = [], [], []
            for place, (block, block_weights, state) in enumerate(zip(pattern, *places, strict=True)):
                inside = note.inside()
                mix = partial(MIXERS[block.mixer.kind], positions=positions, real=real, state=state, note=inside)
                stream, state = _block(spec.residual, block, block_weights, dot, layer + place, stream, mix, inside)
                of_places.append(inside.kept or {})
                new.append(state)
                left.append(residual.running(stream))
            return stream, (tuple(new), jnp.stack(left), tuple(of_places))

        numbers = first + len(run.pattern) * jnp.arange(run.repeat)
        stream, (new_states, left, of_places) = jax.lax.scan(trip, stream, (numbers, weights, states))
        runs.append(new_states)
        of_runs.append(of_places)
        outputs.append(left)
        first += run.repeat * len(run.pattern)
    x = residual.finish(spec.residual, outer, spec.num_layers, stream)
    x = note("final_in", apply_norm(spec.final_norm, outer, "final_norm.weight", "final_norm.bias", x))
    logits = dot(x, outer["embed" if spec.embedding.tied else "head"])
    if spec.head.bias:
        logits = logits + outer["head_bias"]
    logits = logits * spec.head.multiplier
    if spec.head.soft_cap is not None:
        logits = spec.head.soft_cap * jnp.tanh(logits / spec.head.soft_cap)
    return logits, Cache(tuple(runs), cache.capacity), outputs, (tuple(of_runs), note.kept or {})


def _block(
    residual: Residual,
    block: Block,
    weights: Weights,
    dot: Dot,
    layer: jax.Array,
    stream: Any,
    mix: Callable[..., tuple[jax.Array, State]],
    note: Notes,
) -> tuple[Any, State]:
    """The stream of the residual behind the block at `layer`, and what its mixer keeps; `mix` applies the mixer."""

    def normed(norm: Norm | None, name: str, y: jax.Array) -> jax.Array:
        return y if norm is None else apply_norm(norm, weights, f"{name}.weight", f"{name}.bias", y)

    def read(half: Half, stream: Any) -> jax.Array:
        x = RESIDUALS[residual.kind].read(residual, weights, half, layer, stream)
        return note(f"{half}.in", normed(block.pre_norm, f"pre_{half}_norm", x))

    def join(half: Half, stream: Any, y: jax.Array) -> Any:
        y = normed(block.post_norm(half), f"post_{half}_norm", y)
        stream = RESIDUALS[residual.kind].join(residual, weights, half, layer, stream, y)
        note(f"{half}.stream", RESIDUALS[residual.kind].running(stream))
        return stream

    y, state = mix(block.mixer, weights, dot, read("mixer", stream))
    stream = join("mixer", stream, y)
    x = read("feed_forward", stream)
    y = FEED_FORWARDS[block.feed_forward.kind](block.feed_forward, weights, dot, x, note=note)
    return join("feed_forward", stream, y), state
