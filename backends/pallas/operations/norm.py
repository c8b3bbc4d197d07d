"""Normalisation and the residual stream."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import (
    LANES,
    lane_index,
    load_panel,
    load_vector,
    store_operand,
    store_panel,
)


def total(panels):
    """f32[rows, 1]: the sum over all columns of a list of panels."""
    result = panels[0]
    for panel in panels[1:]:
        result = result + panel
    return jnp.sum(result, axis=1, keepdims=True)


def normalised(values, weight, bias, *, columns, eps, kind):
    """The normalised panels; columns past the width stay zero.

    rms: x · rsqrt(mean(x²) + eps) · w; layer: (x − mean) · rsqrt(var + eps) · w + b.
    """
    rows = values[0].shape[0]
    if kind == "layer":
        mean = total(values) * (1.0 / columns)
        values = [
            jnp.where(lane_index(rows) < columns - panel * LANES, value - mean, 0.0)
            if columns - panel * LANES < LANES
            else value - mean
            for panel, value in enumerate(values)
        ]
    scale = lax.rsqrt(total([value * value for value in values]) * (1.0 / columns) + eps)
    result = []
    for panel, value in enumerate(values):
        value = value * scale
        if weight is not None:
            value = value * load_vector(weight, panel)
        if bias is not None:
            value = value + load_vector(bias, panel)
        result.append(value)
    return result


def norm(x, weight, out, bias=None, *, rows, columns, eps, kind, dtype):
    """Normalise the residual f32[rows, columns] into the left side of a dot."""
    values = [load_panel(x, rows, panel) for panel in range(-(-columns // LANES))]
    scaled = normalised(values, weight, bias, columns=columns, eps=eps, kind=kind)
    for panel, value in enumerate(scaled):
        store_operand(out, rows, panel, value, dtype)


def as_operand(x, out, *, rows, columns, dtype):
    """Round f32[rows, columns] to the left side of a dot."""
    for panel in range(-(-columns // LANES)):
        store_operand(out, rows, panel, load_panel(x, rows, panel), dtype)


def residual_add(x, y, bias=None, *, rows, columns, multiplier):
    """x += multiplier · (y + bias)."""
    for panel in range(-(-columns // LANES)):
        value = load_panel(y, rows, panel)
        if bias is not None:
            value = value + load_vector(bias, panel)
        store_panel(x, rows, panel, load_panel(x, rows, panel) + value * multiplier)


def residual_add_norm(x, y, weight, bias=None, norm_bias=None, *, rows, columns, multiplier, eps, kind):
    """x += multiplier · norm(y + bias): a block whose output is normalised before it joins the residual."""
    values = [load_panel(y, rows, panel) for panel in range(-(-columns // LANES))]
    if bias is not None:
        values = [value + load_vector(bias, panel) for panel, value in enumerate(values)]
    values = normalised(values, weight, norm_bias, columns=columns, eps=eps, kind=kind)
    for panel, value in enumerate(values):
        store_panel(x, rows, panel, load_panel(x, rows, panel) + value * multiplier)
