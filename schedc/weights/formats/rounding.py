"""Rounding to the nearest number of a small type, and scales that make the largest number fit."""

import numpy as np

E4M3_MAX = 448.0
E2M1_MAX = 6.0
E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)
"""The magnitudes of e2m1, by code; bit 3 of a code is the sign (OCP Microscaling Formats v1.0, section 5.3.3)."""


def largest(values: np.ndarray, group: int = 0) -> np.ndarray:
    """f32[out, n]: the largest magnitude of every group of inputs (0: of each column)."""
    return by_group(np.abs(values), group).max(axis=2)


def by_group(values: np.ndarray, group: int) -> np.ndarray:
    """f32[out, n, group], the last group filled with zeros."""
    group = group or values.shape[1]
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % group)))
    return padded.reshape(len(values), -1, group)


def over_inputs(scales: np.ndarray, group: int, inputs: int) -> np.ndarray:
    """Scales [out, n] as [out, inputs], each repeated over its group."""
    return scales if group == 0 else np.repeat(scales, group, axis=1)[:, :inputs]


def no_zero(scales: np.ndarray) -> np.ndarray:
    """1 where a scale is 0: a group of zeros."""
    return np.where(scales == 0, np.ones_like(scales), scales)


def to_e4m3(values: np.ndarray) -> np.ndarray:
    """Bits of the nearest e4m3, ties to even, the largest for what is beyond it."""
    from ml_dtypes import float8_e4m3fn

    return np.clip(values, -E4M3_MAX, E4M3_MAX).astype(float8_e4m3fn).view(np.uint8)


def from_e4m3(bits: np.ndarray) -> np.ndarray:
    from ml_dtypes import float8_e4m3fn

    return np.ascontiguousarray(bits).view(float8_e4m3fn).astype(np.float32)


def to_e2m1(values: np.ndarray) -> np.ndarray:
    """Codes 0 … 15 of the nearest e2m1, ties to even, the largest for what is beyond it."""
    from ml_dtypes import float4_e2m1fn

    return np.clip(values, -E2M1_MAX, E2M1_MAX).astype(float4_e2m1fn).view(np.uint8) & 15


def from_e2m1(codes: np.ndarray) -> np.ndarray:
    magnitudes = E2M1[codes & 7]
    return np.where(codes & 8, -magnitudes, magnitudes)


def float_bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def bits_float(bits: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(bits).view(np.float32)
