"""Weights of the reference: on the device, layers of one kind stacked."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.source import WeightSource

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
    names = ["embed", *(name for name in source.names() if name.startswith(("final_norm.", "head_bias")))]
    if not spec.embedding.tied:
        names.append("head")
    return {name: jnp.asarray(source.load(name), _kept_in(source.shape(name), dtype)) for name in names}


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
            places.append({suffix: _stack(source, layers, suffix, dtype) for suffix in by_layer[layers[0]]})
        stacked.append(places)
    return stacked


def _stack(source: WeightSource, layers: Sequence[int], suffix: str, dtype: jnp.dtype) -> jax.Array:
    shape = source.shape(f"layers.{layers[0]}.{suffix}")
    stack = np.empty((len(layers), *shape), np.float32)
    for index, layer in enumerate(layers):
        stack[index] = source.load(f"layers.{layer}.{suffix}")
    return jnp.asarray(stack, _kept_in(shape, dtype))


def _kept_in(shape: tuple[int, ...], dtype: jnp.dtype) -> jnp.dtype:
    """Projections in `dtype`; norms and biases stay f32."""
    return dtype if len(shape) == 2 else jnp.dtype(jnp.float32)
