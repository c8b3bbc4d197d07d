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


def parts_of(rows, levels, height, used):
    """(place, start, step, rows) of the parts of so many rows of f32, in the order of the members; or, of panels of
    `height` rows of which `used` are sent, the rows 0 of all panels, then the rows 1."""
    if height:
        return [(row, row, height, rows // height) for row in range(used)]
    order = wire_order(levels)
    return [(place, part * (rows // len(order)), 1, rows // len(order)) for part, place in enumerate(order)]


def part_words(words, parts, per_word, height):
    """Words of a part on the wire: what there is, cut evenly, or whole groups of 8 for the panels of a row."""
    return -(-parts[0][3] // (8 * per_word)) * 8 if height else words // len(parts)


def part_rows(start, step, first, count):
    """`count` rows of a part from its row `first`."""
    return pl.ds(start + first, count) if step == 1 else pl.ds(start + first * step, count, stride=step)


def pack_wire(x, out, *, wire, levels, height=0, used=0):
    """Round the parts of f32[rows, 128] to the wire."""
    per_word, parts = 1 if wire == "f32" else 2, parts_of(x.shape[0], levels, height, used)
    words = part_words(out.shape[0], parts, per_word, height)
    for place, begin, step, rows in parts:
        for first, count in pieces(words):
            start = first * per_word
            there = max(0, min(count * per_word, rows - start))
            value = jnp.zeros((count * per_word - there, LANES), jnp.float32)
            if there:
                data = pltpu.bitcast(x[part_rows(begin, step, start, there), :], jnp.float32)
                value = data if there == count * per_word else jnp.concatenate([data, value], axis=0)
            out[pl.ds(place * words + first, count), :] = to_words(value, wire)
    rest = out.shape[0] - words * len(parts)
    if rest:
        out[pl.ds(words * len(parts), rest), :] = jnp.zeros((rest, LANES), jnp.int32)


def unpack_wire(blocks, out, *, wire, levels, height=0, used=0):
    """The parts f32[rows, 128] of what is on the wire."""
    per_word, parts = 1 if wire == "f32" else 2, parts_of(out.shape[0], levels, height, used)
    words = part_words(blocks.shape[0], parts, per_word, height)
    for place, begin, step, rows in parts:
        for first, count in pieces(words):
            start = first * per_word
            there = max(0, min(count * per_word, rows - start))
            if there:
                value = from_words(blocks[pl.ds(place * words + first, count), :], wire)[:there]
                out[part_rows(begin, step, start, there), :] = pltpu.bitcast(value, jnp.int32)


def sum_wire(blocks, out, own=None, *, count, wire, result, height=0, used=0):
    """out = own + the sum of `count` blocks, added in f32 in their order: words of `result`, or the rows of parts."""
    whole, per_word, narrow = blocks.shape[0] // count, 1 if wire == "f32" else 2, 1 if result == "f32" else 2
    parts = parts_of(out.shape[0], "1", height, used) if height else [(0, 0, 1, out.shape[0])]
    words = part_words(whole, parts, per_word, height)
    for place, begin, step, rows in parts:
        for first, size in pieces(words):
            start = first * per_word // narrow
            there = max(0, min(size * per_word // narrow, rows - start))
            if there:
                at = place * words + first
                same = [blocks[pl.ds(block * whole + at, size), :] for block in range(count)]
                same = same if own is None else [own[pl.ds(at, size), :], *same]
                total = from_words(same[0], wire)
                for piece in same[1:]:
                    total = total + from_words(piece, wire)
                out[part_rows(begin, step, start, there), :] = to_words(total, result)[:there]


def pack_panels(x, out, *, rows, used, panels):
    """The first `used` rows of every panel of f32[rows, panels * 128], panel after panel, then zeros."""
    for panel in range(panels):
        out[pl.ds(panel * used, used), :] = x[pl.ds(panel * rows, used), :]
    rest = out.shape[0] - panels * used
    if rest:
        out[pl.ds(panels * used, rest), :] = jnp.zeros((rest, LANES), jnp.int32)


def join_panels(blocks, out, *, rows, used, panels, each, every, first, devices):
    """f32[rows, panels * 128] of the blocks of all devices, as `pack_panels` makes them; rows that are not used are 0.

    Panel p is `first` + p % each of the block of device p // each * every.
    """
    block = blocks.shape[0] // devices
    for panel in range(panels):
        at = panel // each * every * block + (first + panel % each) * used
        out[pl.ds(panel * rows, used), :] = blocks[pl.ds(at, used), :]
        if used < rows:
            out[pl.ds(panel * rows + used, rows - used), :] = jnp.zeros((rows - used, LANES), jnp.int32)
