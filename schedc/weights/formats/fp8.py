"""fp8 (e4m3) with an f32 scale a column: w = code · scale. A scale of the whole tensor is that of all its columns.

Rounds a column to nearest with scale = largest / 448.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import E4M3_MAX, bits_float, float_bits, from_e4m3, largest, no_zero, to_e4m3


def _decode(numbers: Numbers) -> np.ndarray:
    return from_e4m3(numbers["codes"]) * bits_float(numbers["scale"])


def _nearest(values: np.ndarray) -> dict[str, np.ndarray]:
    scale = no_zero(largest(values) / np.float32(E4M3_MAX))
    return {"codes": to_e4m3(values / scale), "scale": float_bits(scale)}


FORMAT = Format("fp8", (Section("codes", 8, 1), Section("scale", 32, 0)), _decode, _nearest)
