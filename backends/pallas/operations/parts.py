"""What goes over the wire where a member of a group is sent whole panels: its part of f32[rows, 128 · panels].

A part is as many panels for each of `members`, the last ones may have fewer, or none. Of a panel of `height` rows the
first `used` are sent: those numbered 0 of all panels of a part, then those numbered 1; or, where all are used, panel
after panel. A part lies on its own in whole groups of 8 word rows, and what is not sent of those is zero.
"""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.collective import from_words, part_rows, to_words
from schedc.backends.pallas.operations.words import LANES, stack


def part_chunks(member, panels, *, members, height, used):
    """(first row, rows, step, place in the part) of what a member's part has of f32[panels · height, 128]."""
    each = -(-panels // members)
    first = member * each
    there = max(0, min(each, panels - first))
    if not there:
        return []
    if used == height:
        return [(first * height, there * height, 1, 0)]
    return [(first * height + row, there, height, row * each) for row in range(used)]


def part_values(x, member, *, members, height, used, rows):
    """f32[rows, 128]: a member's part, then zeros."""
    values, place = [], 0
    for start, count, step, at in part_chunks(member, x.shape[0] // height, members=members, height=height, used=used):
        if at > place:
            values.append(jnp.zeros((at - place, LANES), jnp.float32))
        values.append(pltpu.bitcast(x[part_rows(start, step, 0, count), :], jnp.float32))
        place = at + count
    if place < rows:
        values.append(jnp.zeros((rows - place, LANES), jnp.float32))
    return stack(values)


def pack_parts(x, out, last=None, *, wire, members, height, used):
    """Round the part of every member to the wire, and put f32[1, 128] after it, if there is something for all."""
    pitch, per_word = out.shape[0] // members, 1 if wire == "f32" else 2
    words = -(-(-(-(x.shape[0] // height) // members) * used) // per_word)
    for member in range(members):
        value = part_values(x, member, members=members, height=height, used=used, rows=pitch * per_word)
        out[pl.ds(member * pitch, pitch), :] = to_words(value, wire)
        if last is not None:
            out[pl.ds(member * pitch + words, 1), :] = last[pl.ds(0, 1), :]


def unpack_parts(blocks, out, *, wire, members, height, used):
    """The rows of all panels that are used, of the parts of all members."""
    pitch, panels = blocks.shape[0] // members, out.shape[0] // height
    for member in range(members):
        chunks = part_chunks(member, panels, members=members, height=height, used=used)
        if chunks:
            value = from_words(blocks[pl.ds(member * pitch, pitch), :], wire)
        for start, count, step, at in chunks:
            out[part_rows(start, step, 0, count), :] = pltpu.bitcast(value[at : at + count], jnp.int32)
