"""Normalisation and the residual stream."""

import jax.numpy as jnp
from jax import lax

from schedc.backends.pallas.operations.words import (
    LANES,
    lane_index,
    load_panels,
    load_vector,
    store_operand,
    store_panels,
)


def total(panels):
    """f32[rows, 1]: the sum over all columns of a list of panels."""
    result = panels[0]
    for panel in panels[1:]:
        result = result + panel
    return jnp.sum(result, axis=1, keepdims=True)


def centred(values, columns):
    """The panels minus their mean; columns past the width stay zero."""
    mean = total(values) * (1.0 / columns)
    rows = values[0].shape[0]
    return [
        jnp.where(lane_index(rows) < columns - panel * LANES, value - mean, 0.0)
        if columns - panel * LANES < LANES
        else value - mean
        for panel, value in enumerate(values)
    ]


def normalised(values, weight, bias, *, columns, eps, kind):
    """The normalised panels; `weight` and `bias` are panels f32[1, 128], or None: no factor, no shift.

    rms: x · rsqrt(mean(x²) + eps) · w; layer: (x − mean) · rsqrt(var + eps) · w + b; rms_of_scaled: rms of x · w.
    """
    if kind == "rms_of_scaled":
        values, weight = [value * gain for value, gain in zip(values, weight, strict=True)], None
    if kind == "layer":
        values = centred(values, columns)
    scale = lax.rsqrt(total([value * value for value in values]) * (1.0 / columns) + eps)
    values = [value * scale for value in values]
    if weight is not None:
        values = [value * gain for value, gain in zip(values, weight, strict=True)]
    return values if bias is None else [value + shift for value, shift in zip(values, bias, strict=True)]


def with_bias(values, bias):
    """The panels plus a bias, if there is one."""
    if bias is None:
        return values
    return [value + shift for value, shift in zip(values, load_vector(bias, len(values)), strict=True)]


def norm_vectors(weight, bias, panels):
    """The panels of a norm's factor and shift, None for one that there is not."""
    return [None if vector is None else load_vector(vector, panels) for vector in (weight, bias)]


def norm(x, out, weight=None, bias=None, *, rows, columns, eps, kind, dtype):
    """Normalise the residual f32[rows, columns] into the left side of a dot."""
    panels = -(-columns // LANES)
    gain, shift = norm_vectors(weight, bias, panels)
    scaled = normalised(load_panels(x, rows, panels), gain, shift, columns=columns, eps=eps, kind=kind)
    store_operand(out, rows, scaled, dtype)


def norm_in_place(x, weight=None, bias=None, *, rows, columns, eps, kind):
    """x = norm(x), f32[rows, columns]."""
    panels = -(-columns // LANES)
    gain, shift = norm_vectors(weight, bias, panels)
    store_panels(x, rows, normalised(load_panels(x, rows, panels), gain, shift, columns=columns, eps=eps, kind=kind))


def as_operand(x, out, *, rows, columns, dtype):
    """Round f32[rows, columns] to the left side of a dot."""
    store_operand(out, rows, load_panels(x, rows, -(-columns // LANES)), dtype)


def add_to_residual(x, values, gate, rows, multiplier, temperature, floor):
    """x += multiplier · values; with the `gate` w of every column x = α · x + β · values, where

    β = sigmoid(w / temperature), α = sqrt(max(sigmoid(−w / temperature) · (1 + β), floor)).
    """
    old = load_panels(x, rows, len(values))
    if gate is None:
        store_panels(x, rows, [a + b * multiplier for a, b in zip(old, values, strict=True)])
        return
    gates = [w * (1.0 / temperature) for w in load_vector(gate, len(values))]
    added = [1.0 / (1.0 + jnp.exp(-z)) for z in gates]
    kept = [jnp.sqrt(jnp.maximum((1.0 + b) / (1.0 + jnp.exp(z)), floor)) for b, z in zip(added, gates, strict=True)]
    store_panels(x, rows, [p * a + q * b for p, a, q, b in zip(old, kept, values, added, strict=True)])


def residual_add(x, y, bias=None, gate=None, *, rows, columns, multiplier=1.0, temperature=1.0, floor=0.0):
    """x += multiplier · (y + bias), or both gated."""
    values = with_bias(load_panels(y, rows, -(-columns // LANES)), bias)
    add_to_residual(x, values, gate, rows, multiplier, temperature, floor)


def residual_add_norm(
    x, y, weight=None, bias=None, norm_bias=None, gate=None, *, rows, columns, eps, kind,
    multiplier=1.0, temperature=1.0, floor=0.0,
):  # fmt: skip
    """x += multiplier · norm(y + bias), or both gated: the output is normalised before it joins the residual."""
    panels = -(-columns // LANES)
    gain, shift = norm_vectors(weight, norm_bias, panels)
    values = with_bias(load_panels(y, rows, panels), bias)
    values = normalised(values, gain, shift, columns=columns, eps=eps, kind=kind)
    add_to_residual(x, values, gate, rows, multiplier, temperature, floor)
