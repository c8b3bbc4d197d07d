"""The sections of a quantised weight's panels, side by side: codes, then scales."""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import join


def section_rows(numbers, per_word):
    """Word rows of so many numbers: whole groups of 8."""
    return -(-numbers // (8 * per_word)) * 8


def section_words(words, panels, rows, index):
    """int32[rows[index], panels · 128] of a section, where `rows` are the word rows of all sections of a panel."""
    panel_rows, first = sum(rows), sum(rows[:index])
    return join([words[pl.ds(panel * panel_rows + first, rows[index]), :] for panel in range(panels)])


def spread(scales, group, depth):
    """Scales [groups, n], each row repeated over its group: [depth, n]."""
    groups, columns = -(-depth // group), scales.shape[1]
    repeated = jnp.broadcast_to(scales[:groups, None, :], (groups, group, columns))
    return repeated.reshape(groups * group, columns)[:depth]


def column_scales(section):
    """f32[1, n] of a section with one f32 a column."""
    return pltpu.bitcast(section, jnp.float32)[:1]


def mixed_dot(left, codes):
    """f32[m, n] = left bf16[m, k] · codes[k, n] as they are; the MXU takes 4-bit and 8-bit numbers beside bf16."""
    return lax.dot_general(left, codes, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
