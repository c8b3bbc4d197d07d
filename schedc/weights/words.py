"""Numbers as 32-bit words: the one element type of every packed array. Low bits hold the lower row."""

from math import ceil
from typing import Literal

import numpy as np
from ml_dtypes import bfloat16

WordDtype = Literal["bf16", "f32"]

LANES = 128
WORD_ROWS = 8  # a transfer moves word rows by eights


def per_word(dtype: WordDtype) -> int:
    """How many numbers of `dtype` one 32-bit word holds."""
    return 2 if dtype == "bf16" else 1


def lanes_up(width: int) -> int:
    """`width` rounded up to a multiple of 128 lanes."""
    return ceil(width / LANES) * LANES


def to_bits(values: np.ndarray, dtype: WordDtype) -> np.ndarray:
    """f32 → its bits: uint16 of the nearest bf16 (ties to even), or uint32."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "bf16":
        return values.astype(bfloat16).view(np.uint16)
    return values.view(np.uint32)


def from_bits(bits: np.ndarray, dtype: WordDtype) -> np.ndarray:
    """The f32 values of `to_bits`."""
    bits = np.ascontiguousarray(bits)
    if dtype == "bf16":
        return bits.view(bfloat16).astype(np.float32)
    return bits.view(np.float32)


def join_rows(rows: np.ndarray, dtype: WordDtype) -> np.ndarray:
    """f32[..., n, lanes] → int32[..., n / per_word, lanes]: word row r holds rows 2r (low half) and 2r + 1 for bf16."""
    bits = to_bits(rows, dtype)
    if dtype == "bf16":
        low, high = bits[..., 0::2, :].astype(np.uint32), bits[..., 1::2, :].astype(np.uint32)
        bits = low | high << 16
    return bits.view(np.int32)


def split_rows(words: np.ndarray, dtype: WordDtype) -> np.ndarray:
    """The inverse of `join_rows`: int32[..., m, lanes] → f32[..., m · per_word, lanes]."""
    bits = np.ascontiguousarray(words).view(np.uint32)
    if dtype == "f32":
        return from_bits(bits, dtype)
    halves = np.stack([bits & 0xFFFF, bits >> 16], axis=-2).astype(np.uint16)
    return from_bits(halves.reshape(*bits.shape[:-2], -1, bits.shape[-1]), dtype)
