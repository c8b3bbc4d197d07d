"""int8 with an f32 scale a column: w = code · scale.

Rounds a column to nearest with scale = largest / 127, so that codes are −127 … 127.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import bits_float, float_bits, largest, no_zero


def _decode(numbers: Numbers) -> np.ndarray:
    return numbers["codes"].view(np.int8).astype(np.float32) * bits_float(numbers["scale"])


def _nearest(values: np.ndarray) -> dict[str, np.ndarray]:
    scale = no_zero(largest(values) / np.float32(127))
    codes = np.clip(np.rint(values / scale), -127, 127).astype(np.int8)
    return {"codes": codes.view(np.uint8), "scale": float_bits(scale)}


FORMAT = Format("int8", (Section("codes", 8, 1), Section("scale", 32, 0)), _decode, _nearest)
