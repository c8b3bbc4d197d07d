"""What goes over the wire between devices: rounding to it, adding what has come, and taking it apart.

A wire of dtype `bf16` has two f32 rows in a row of words, the even one in the low 16 bits; `f32` has one. A block on
the wire is padded with zeros to whole groups of 8 word rows. `levels`, such as "2x4", says how many blocks there are
and in which order they lie on the wire: those of all members 0 of the first level, then of all members 1, and so on.
"""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import DTYPES, LANES

PIECE = 64
"""Word rows that are worked on at a time, so that they stay in registers."""


def wire_order(levels):
    """The place on the wire of each block, in the order of the members."""
    order = [0]
    for size in reversed([int(size) for size in levels.split("x")]):
        order = [member * len(order) + place for place in order for member in range(size)]
    return order


def pieces(rows):
    """(first row, rows) of pieces of at most PIECE rows."""
    return [(first, min(PIECE, rows - first)) for first in range(0, rows, PIECE)]


def to_words(value, dtype):
    """int32[words, 128] of f32[rows, 128]."""
    return pltpu.bitcast(value.astype(DTYPES[dtype]), jnp.int32)


def from_words(words, dtype):
    """f32[rows, 128] of int32[words, 128]."""
    return pltpu.bitcast(words, DTYPES[dtype]).astype(jnp.float32)


def pack_wire(x, out, *, wire, levels):
    """Round the parts of f32[rows, 128] to the wire."""
    order, per_word = wire_order(levels), 1 if wire == "f32" else 2
    rows, words = x.shape[0] // len(order), out.shape[0] // len(order)
    for part, place in enumerate(order):
        for first, count in pieces(words):
            start = first * per_word
            there = max(0, min(count * per_word, rows - start))
            value = jnp.zeros((count * per_word - there, LANES), jnp.float32)
            if there:
                data = pltpu.bitcast(x[pl.ds(part * rows + start, there), :], jnp.float32)
                value = data if there == count * per_word else jnp.concatenate([data, value], axis=0)
            out[pl.ds(place * words + first, count), :] = to_words(value, wire)


def unpack_wire(blocks, out, *, wire, levels):
    """The parts f32[rows, 128] of what is on the wire."""
    order, per_word = wire_order(levels), 1 if wire == "f32" else 2
    rows, words = out.shape[0] // len(order), blocks.shape[0] // len(order)
    for part, place in enumerate(order):
        for first, count in pieces(words):
            start = first * per_word
            there = max(0, min(count * per_word, rows - start))
            if there:
                value = from_words(blocks[pl.ds(place * words + first, count), :], wire)[:there]
                out[pl.ds(part * rows + start, there), :] = pltpu.bitcast(value, jnp.int32)


def sum_wire(blocks, out, own=None, *, count, wire, result):
    """out = own + the sum of `count` blocks, added in f32 in their order; words of `result`, as many as `out` takes."""
    words, per_word, narrow = blocks.shape[0] // count, 1 if wire == "f32" else 2, 1 if result == "f32" else 2
    for first, size in pieces(words):
        start = first * per_word // narrow
        there = max(0, min(size * per_word // narrow, out.shape[0] - start))
        if there:
            parts = [blocks[pl.ds(block * words + first, size), :] for block in range(count)]
            parts = parts if own is None else [own[pl.ds(first, size), :], *parts]
            total = from_words(parts[0], wire)
            for part in parts[1:]:
                total = total + from_words(part, wire)
            out[pl.ds(start, there), :] = to_words(total, result)[:there]
