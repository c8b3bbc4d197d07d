"""Block attention residuals: every half reads a mixture of the sums of blocks of layers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from schedc.reference.weights import Weights
from schedc.spec.model import Half
from schedc.spec.residuals.block_attention import FINAL, BlockAttentionResidual


class Stream(NamedTuple):
    blocks: jax.Array
    """f32[blocks of the model, rows, tokens, hidden]; those that are not complete are zeros."""
    sum: jax.Array
    """f32[rows, tokens, hidden]: of this block so far."""


def start(residual: BlockAttentionResidual, x: jax.Array, layers: int) -> Stream:
    return Stream(jnp.zeros((residual.sources(layers), *x.shape), x.dtype), x)


def read(residual: BlockAttentionResidual, weights: Weights, half: Half, layer: jax.Array, stream: Stream) -> jax.Array:
    """Layer l has ceil(l / block) complete blocks at its mixer and floor(l / block) + 1 at its feed-forward."""
    before = layer + residual.block - 1 if half == "mixer" else layer + residual.block
    return _mix(residual, weights, f"{half}_residual", before // residual.block, stream)


def join(
    residual: BlockAttentionResidual, weights: Weights, half: Half, layer: jax.Array, stream: Stream, y: jax.Array
) -> Stream:
    """The mixer's output at the first layer of a block starts a new sum."""
    if half == "feed_forward":
        return Stream(stream.blocks, stream.sum + y)
    first = layer % residual.block == 0
    with_sum = stream.blocks.at[layer // residual.block].set(stream.sum)
    return Stream(jnp.where(first, with_sum, stream.blocks), jnp.where(first, y, stream.sum + y))


def running(stream: Stream) -> jax.Array:
    """The sum of this block so far, as draft models read it."""
    return stream.sum


def finish(residual: BlockAttentionResidual, outer: Weights, layers: int, stream: Stream) -> jax.Array:
    return _mix(residual, outer, FINAL, residual.sources(layers), stream)


def _mix(
    residual: BlockAttentionResidual, weights: Weights, name: str, complete: jax.Array | int, stream: Stream
) -> jax.Array:
    """f32[rows, tokens, hidden] out of the first `complete` blocks and the sum."""
    sources = jnp.concatenate([stream.blocks, stream.sum[None]])
    normed = sources * jax.lax.rsqrt(jnp.square(sources).mean(-1, keepdims=True) + residual.eps)
    scores = (normed * (weights[f"{name}.norm"] * weights[f"{name}.query"])).sum(-1)
    number = jnp.arange(len(sources))
    there = (number < complete) | (number == len(sources) - 1)
    shares = jax.nn.softmax(jnp.where(there[:, None, None], scores, -jnp.inf), axis=0)
    return (shares[..., None] * sources).sum(0)
