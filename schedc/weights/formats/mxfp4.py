"""mxfp4: e2m1 with a power of two (e8m0) a group of 32 inputs of a column: w = code · 2^(scale − 127).

OCP Microscaling Formats (MX) v1.0. Rounds a group to nearest with the scale 2^(floor(log2(largest)) − 2) of its
section 6.3; what is then beyond 6 becomes 6.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import from_e2m1, largest, no_zero, over_inputs, to_e2m1

GROUP = 32


def power(scale: np.ndarray) -> np.ndarray:
    """2^(scale − 127) as f32; exact, also for the scale 0, which is subnormal."""
    return np.ldexp(np.float32(1), scale.astype(np.int32) - 127).astype(np.float32)


def _decode(numbers: Numbers) -> np.ndarray:
    values = from_e2m1(numbers["codes"])
    return values * over_inputs(power(numbers["scale"]), GROUP, values.shape[1])


def _nearest(values: np.ndarray) -> dict[str, np.ndarray]:
    exponent = np.frexp(no_zero(largest(values, GROUP)))[1] - 1  # floor(log2)
    scale = np.clip(exponent - 2 + 127, 1, 254).astype(np.uint8)
    return {"codes": to_e2m1(values / over_inputs(power(scale), GROUP, values.shape[1])), "scale": scale}


FORMAT = Format("mxfp4", (Section("codes", 4, 1), Section("scale", 8, GROUP)), _decode, _nearest)
