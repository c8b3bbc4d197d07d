"""nvfp4: e2m1 with an e4m3 scale a group of 16 inputs, and an f32 scale of the tensor, stored by column.

w = code · (scale · tensor). Rounds with tensor = largest of the column / (6 · 448), and a group's scale = its largest
/ 6 / tensor to the nearest e4m3.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import (
    E2M1_MAX,
    E4M3_MAX,
    bits_float,
    float_bits,
    from_e2m1,
    from_e4m3,
    largest,
    no_zero,
    over_inputs,
    to_e2m1,
    to_e4m3,
)

GROUP = 16


def _scales(numbers: Numbers) -> np.ndarray:
    return from_e4m3(numbers["scale"]) * bits_float(numbers["tensor"])


def _decode(numbers: Numbers) -> np.ndarray:
    values = from_e2m1(numbers["codes"])
    return values * over_inputs(_scales(numbers), GROUP, values.shape[1])


def _nearest(values: np.ndarray) -> dict[str, np.ndarray]:
    tensor = no_zero(largest(values) / np.float32(E2M1_MAX * E4M3_MAX))
    numbers = {"scale": to_e4m3(largest(values, GROUP) / np.float32(E2M1_MAX) / tensor), "tensor": float_bits(tensor)}
    scales = over_inputs(no_zero(_scales(numbers)), GROUP, values.shape[1])
    return {"codes": to_e2m1(values / scales), **numbers}


FORMAT = Format(
    "nvfp4", (Section("codes", 4, 1), Section("scale", 8, GROUP), Section("tensor", 32, 0)), _decode, _nearest
)
