"""Projections and the dense feed-forward's activation."""

import jax.numpy as jnp

from schedc.backends.pallas.operations.norm import with_bias
from schedc.backends.pallas.operations.words import (
    LANES,
    load_operand,
    load_panels,
    split,
    store_operand,
    store_panels,
)


def matmul(x, w, out, *, rows, depth, panels, dtype, product, sequences):
    """out f32[rows, panels * 128] = x[rows, depth] · w[depth, panels * 128], one tile of columns.

    `product` multiplies by the words of the format that w is stored in; the first `sequences` rows count.
    """
    result = product(load_operand(x, rows, depth, dtype), w, sequences, depth, panels, dtype)
    store_panels(out, rows, split(result, rows, panels))


def activate(value, activation):
    """Elementwise activation by its Hugging Face name."""
    match activation:
        case "silu":
            return value / (1.0 + jnp.exp(-value))
        case "gelu_tanh":
            return 0.5 * value * (1.0 + jnp.tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)))
        case "gelu":
            return 0.5 * value * (1.0 + erf(value * 0.7071067811865476))
        case "relu":
            return jnp.maximum(value, 0.0)
        case "relu2":
            return jnp.maximum(value, 0.0) * jnp.maximum(value, 0.0)


def erf(x):
    """erf to 1.2e-7 absolute: 1 − t · exp(−x² + polynomial(t)), Numerical Recipes §6.2 (erfc Chebyshev fit)."""
    z = jnp.abs(x)
    t = 1.0 / (1.0 + 0.5 * z)
    series = 0.17087277
    for coefficient in (
        -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
    ):  # fmt: skip
        series = series * t + coefficient
    tail = t * jnp.exp(series - z * z)
    return jnp.where(x >= 0.0, 1.0 - tail, tail - 1.0)


def gate_and_up(gate, up, activation, limit, beta, linear_beta):
    """activation(gate) · up; `swiglu_clamped` clamps both to `limit`, the gate only from above.

    situ: beta · tanh(gate / beta) · sigmoid(gate) · linear_beta · tanh(up / linear_beta).
    """
    match activation:
        case "swiglu_clamped":
            gate, up = jnp.minimum(gate, limit), jnp.clip(up, -limit, limit)
            return gate / (1.0 + jnp.exp(-1.702 * gate)) * (up + 1.0)
        case "situ":
            bounded = jnp.tanh(gate * (1.0 / beta)) * jnp.tanh(up * (1.0 / linear_beta))
            return (beta * linear_beta) * bounded / (1.0 + jnp.exp(-gate))
        case _:
            return activate(gate, activation) * up


def gated(
    y, out, gate_bias=None, up_bias=None, *, rows, width, activation, dtype, limit=0.0, beta=1.0, linear_beta=1.0
):
    """out[rows, width] = activation(gate) · up, where y holds the gate's panels and then the up's."""
    panels = -(-width // LANES)
    halves = load_panels(y, rows, 2 * panels)
    gate, up = with_bias(halves[:panels], gate_bias), with_bias(halves[panels:], up_bias)
    settings = activation, limit, beta, linear_beta
    store_operand(out, rows, [gate_and_up(a, b, *settings) for a, b in zip(gate, up, strict=True)], dtype)


def plain(y, out, up_bias=None, *, rows, width, activation, dtype):
    """out[rows, width] = activation(y)."""
    values = with_bias(load_panels(y, rows, -(-width // LANES)), up_bias)
    store_operand(out, rows, [activate(value, activation) for value in values], dtype)
