"""Numbers as 32-bit words: the one element type of every packed array. Low bits hold the lower row."""

from math import ceil
from typing import Literal

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn

WordDtype = Literal["bf16", "f32"]

CacheDtype = Literal["bf16", "f32", "fp8"]
"""fp8: e4m3, larger numbers than its largest become that."""

FP8_LARGEST = 448.0

LANES = 128
WORD_ROWS = 8  # a transfer moves word rows by eights


def per_word(dtype: CacheDtype) -> int:
    """How many numbers of `dtype` one 32-bit word holds."""
    return {"f32": 1, "bf16": 2, "fp8": 4}[dtype]


def lanes_up(width: int) -> int:
    """`width` rounded up to a multiple of 128 lanes."""
    return ceil(width / LANES) * LANES


def to_bits(values: np.ndarray, dtype: CacheDtype) -> np.ndarray:
    """f32 → its bits: uint16 of the nearest bf16 (ties to even), uint8 of the nearest fp8, or uint32."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "fp8":
        return np.clip(values, -FP8_LARGEST, FP8_LARGEST).astype(float8_e4m3fn).view(np.uint8)
    if dtype == "bf16":
        return values.astype(bfloat16).view(np.uint16)
    return values.view(np.uint32)


def from_bits(bits: np.ndarray, dtype: CacheDtype) -> np.ndarray:
    """The f32 values of `to_bits`."""
    bits = np.ascontiguousarray(bits)
    if dtype == "fp8":
        return bits.view(float8_e4m3fn).astype(np.float32)
    if dtype == "bf16":
        return bits.view(bfloat16).astype(np.float32)
    return bits.view(np.float32)


def join_rows(rows: np.ndarray, dtype: CacheDtype) -> np.ndarray:
    """f32[..., n, lanes] → int32[..., n / per_word, lanes]: word row r holds per_word rows from r · per_word on.

    The first of them is in the low bits.
    """
    bits, each = to_bits(rows, dtype), per_word(dtype)
    words = np.zeros((*bits.shape[:-2], bits.shape[-2] // each, bits.shape[-1]), np.uint32)
    for place in range(each):
        words |= bits[..., place::each, :].astype(np.uint32) << (32 // each * place)
    return words.view(np.int32)


def split_rows(words: np.ndarray, dtype: CacheDtype) -> np.ndarray:
    """The inverse of `join_rows`: int32[..., m, lanes] → f32[..., m · per_word, lanes]."""
    whole, each = np.ascontiguousarray(words).view(np.uint32), per_word(dtype)
    container = {1: np.uint32, 2: np.uint16, 4: np.uint8}[each]
    parts = np.stack([(whole >> (32 // each * place)).astype(container) for place in range(each)], axis=-2)
    return from_bits(parts.reshape(*whole.shape[:-2], -1, whole.shape[-1]), dtype)
