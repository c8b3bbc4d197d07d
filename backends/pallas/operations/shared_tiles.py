"""Attention of all heads of a group to the tiles that a device has: queries of all devices in, softmaxes of all out.

A section is a panel of a sequence, of its queries or its softmax. A device has `block` rows of each, whole groups of 8;
with `used` only the first ones are of heads, and where all heads are together those alone lie one after the other.
"""

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import stack


def join_queries(x, q, *, devices, sections, block, used=0):
    """q [section][device][block or used rows], sections padded to 8 rows, of x [device][section][block rows]."""
    rows = used or block
    whole = -(-devices * rows // 8) * 8
    for section in range(sections):
        for device in range(devices):
            source, target = (device * sections + section) * block, section * whole + device * rows
            q[pl.ds(target, rows), :] = x[pl.ds(source, rows), :]


def part_softmaxes(state, out, *, devices, sections, block, used=0):
    """The inverse: out [device][section][block rows]."""
    rows = used or block
    whole = -(-devices * rows // 8) * 8
    for section in range(sections):
        for device in range(devices):
            source, target = section * whole + device * rows, (device * sections + section) * block
            out[pl.ds(target, rows), :] = state[pl.ds(source, rows), :]


def combine_softmaxes(own, blocks, state, *, count, sequences, panels, block):
    """The softmax over all tiles, of those over the own tiles and over the tiles of `count` others.

    Each is [sequence][panel, then maximum, then sum of weights][block rows], for this device's heads.
    """
    for s in range(sequences):
        first, rows = s * (panels + 2) * block, (panels + 2) * block
        parts = [own[pl.ds(first, rows), :]]
        parts += [blocks[pl.ds(other * sequences * rows + first, rows), :] for other in range(count)]
        values = [pltpu.bitcast(part, jnp.float32) for part in parts]
        tops = [value[panels * block : (panels + 1) * block] for value in values]
        top = tops[0]
        for other in tops[1:]:
            top = jnp.maximum(top, other)
        shares = [jnp.exp(each - top) for each in tops]
        sums = []
        for panel in [*range(panels), panels + 1]:
            weighted = [value[panel * block : (panel + 1) * block] * w for value, w in zip(values, shares, strict=True)]
            total = weighted[0]
            for value in weighted[1:]:
                total = total + value
            sums.append(total)
        whole = stack([*sums[:panels], top, sums[panels]])
        state[pl.ds(first, rows), :] = pltpu.bitcast(whole, jnp.int32)
