"""A norm of q and of k over all their heads: first the sums of squares, over all devices if need be, then the rest."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import (
    LANES,
    join,
    lane_index,
    load_panels,
    load_vector,
    stack,
    store_panels,
)


def sum_squares(y, out, q_bias=None, k_bias=None, *, rows, heads, kv_heads, head_dim, copies):
    """out f32[rows, 128]: in lane 0 the sum of squares of q, in lane 1 that of k divided by `copies`.

    y f32[rows, (heads + 2·kv_heads)·head_dim] without the biases; `copies`: how many devices have each kv head.
    """
    panels = -(-head_dim // LANES)
    projected = join(load_panels(y, rows, -(-((heads + 2 * kv_heads) * head_dim) // LANES)))

    def squares(first, count, bias):
        total = jnp.zeros((rows, 1), jnp.float32)
        shift = [None] * count if bias is None else by_head(load_vector(bias, count * panels), panels)
        for index in range(count):
            value = projected[:, (first + index) * head_dim : (first + index + 1) * head_dim]
            value = value if shift[index] is None else value + shift[index][:, :head_dim]
            total = total + jnp.sum(value * value, axis=1, keepdims=True)
        return total

    q, k = squares(0, heads, q_bias), squares(heads, kv_heads, k_bias) * (1.0 / copies)
    lane = lane_index(rows)
    store_panels(out, rows, [jnp.where(lane == 0, q, jnp.where(lane == 1, k, 0.0))])


def by_head(vector, panels):
    """The panels f32[1, 128] of a vector, padded by head, as f32[1, panels · 128] a head."""
    return [join(vector[first : first + panels]) for first in range(0, len(vector), panels)]


def normed_jointly(x, squares, weight, *, rows, lane, columns, eps):
    """f32[heads · rows, lanes], all heads one below the other, by the sum of squares of `columns` numbers a row."""
    heads, panels = x.shape[0] // rows, x.shape[1] // LANES
    scale = lax.rsqrt(load_panels(squares, rows, 1)[0][:, lane : lane + 1] * (1.0 / columns) + eps)
    if weight is None:
        return x * stack([scale] * heads)
    gains = by_head(load_vector(weight, heads * panels), panels)
    return x * stack([scale * gain for gain in gains])
