"""Consecutive tokens put into a cache at once."""

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import load_rows
from schedc.backends.pallas.operations.words import CACHED, LANES, stack


def merge_tokens(new, chunks, *, offset, count, rows, panels, dtype):
    """Put the first `count` tokens into `chunks` of the cache, from place `offset` of the first on, in its format.

    new f32[rows][panel], the panels padded to a multiple of 8; chunks [chunk][panel][8]. The rows go round by `offset`,
    so that each lies where its chunk has it, and a mask says which of a word's tokens are new.
    """
    stored, chunk_tokens, _ = CACHED[dtype]
    per_word, stride = chunk_tokens // 8, -(-panels // 8) * 8
    height, bits = -(-rows // chunk_tokens) * chunk_tokens, 32 // per_word
    row = lax.broadcasted_iota(jnp.int32, (8, LANES), 0)
    masks = []
    for chunk in range(chunks.shape[0] // (panels * 8)):
        mask = jnp.zeros((8, LANES), jnp.int32)
        for part in range(per_word):
            token = row * per_word + (chunk * chunk_tokens + part) - offset
            word = -1 if per_word == 1 else lax.shift_left(jnp.int32((1 << bits) - 1), jnp.int32(part * bits))
            mask = jnp.where((token >= 0) & (token < count), mask | word, mask)
        masks.append(mask)
    for panel in range(panels):
        tokens = load_rows(new, panel, rows, stride)
        if height > rows:
            tokens = stack([tokens, jnp.zeros((height - rows, LANES), jnp.float32)])
        tokens = pltpu.roll(tokens, offset, 0)
        if dtype == "fp8":  # What e4m3 cannot hold becomes its largest number.
            tokens = jnp.clip(tokens, -448.0, 448.0)
        words = pltpu.bitcast(tokens.astype(stored), jnp.int32)
        for chunk, mask in enumerate(masks):
            place, turned = pl.ds((chunk * panels + panel) * 8, 8), chunk * 8 % words.shape[0]
            chunks[place, :] = (chunks[place, :] & ~mask) | (words[turned : turned + 8] & mask)
