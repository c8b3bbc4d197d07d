"""Weights of the reference: on the device, layers of one kind stacked."""

from collections.abc import Callable, Sequence
from re import findall, sub

import jax
import jax.numpy as jnp
import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.source import WeightSource, family_of

Weights = dict[str, jax.Array]
"""By name, those of a layer without `layers.{i}.`; a projection is [out, in]."""

Dot = Callable[[jax.Array, jax.Array], jax.Array]
"""x[..., in], projection [out, in] → f32[..., out]."""


def make_dot(dtype: jnp.dtype) -> Dot:
    """Products of numbers rounded to `dtype`, summed in f32."""

    def dot(x: jax.Array, weight: jax.Array) -> jax.Array:
        return jnp.einsum(
            "...i,oi->...o",
            x.astype(dtype),
            weight.astype(dtype),
            precision=jax.lax.Precision.HIGHEST,
            preferred_element_type=jnp.float32,
        )

    return dot


def outer_weights(spec: ModelSpec, source: WeightSource, dtype: jnp.dtype) -> Weights:
    small = ("embedding_norm.", "final_norm.", "final_residual.", "head_bias")
    names = ["embed", *(name for name in source.names() if name.startswith(small))]
    if not spec.embedding.tied:
        names.append("head")
    return {name: jnp.asarray(source.load(name), _kept_in(name, dtype)) for name in names}


def layer_weights(spec: ModelSpec, source: WeightSource, dtype: jnp.dtype) -> list[list[Weights]]:
    """[run][place of the pattern] → weights [repeat, …] of that place in all trips of the run."""
    by_layer: dict[int, list[str]] = {}
    for name in source.names():
        if name.startswith("layers."):
            _, layer, suffix = name.split(".", 2)
            by_layer.setdefault(int(layer), []).append(suffix)
    stacked: list[list[Weights]] = []
    for run_index, run in enumerate(spec.layers):
        places = []
        for place in range(len(run.pattern)):
            layers = [at.layer for at in spec.iter_layers() if (at.run, at.place) == (run_index, place)]
            suffixes = _of_every_expert(by_layer[layers[0]])
            places.append({name: _stack(source, layers, own, dtype) for name, own in suffixes.items()})
        stacked.append(places)
    return stacked


def _of_every_expert(suffixes: Sequence[str]) -> dict[str, list[str]]:
    """`mlp.experts.gate` → the suffixes of that weight of every expert, in order; any other weight → its own suffix."""
    found: dict[str, list[str]] = {}
    for suffix in suffixes:
        found.setdefault(sub(r"\.experts\.\d+\.", ".experts.", suffix), []).append(suffix)
    for own in found.values():
        own.sort(key=lambda suffix: [int(number) for number in findall(r"\.experts\.(\d+)\.", suffix)])
    return found


def _stack(source: WeightSource, layers: Sequence[int], suffixes: list[str], dtype: jnp.dtype) -> jax.Array:
    """[layers, …], of the weights of experts [layers, experts, …]."""
    shape = source.shape(f"layers.{layers[0]}.{suffixes[0]}")
    stack = np.empty((len(layers), len(suffixes), *shape), np.float32)
    for index, layer in enumerate(layers):
        for expert, suffix in enumerate(suffixes):
            stack[index, expert] = source.load(f"layers.{layer}.{suffix}")
    name = f"layers.{layers[0]}.{suffixes[0]}"
    return jnp.asarray(stack if ".experts." in name else stack[:, 0], _kept_in(name, dtype))


def _kept_in(name: str, dtype: jnp.dtype) -> jnp.dtype:
    """Projections and the embedding in `dtype`; norms, biases and short convolutions stay f32."""
    return dtype if name == "embed" or family_of(name) is not None else jnp.dtype(jnp.float32)
