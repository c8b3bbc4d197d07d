"""fp8 (e4m3) with an f32 scale a block: w = code · scale of its block of 128 inputs × 128 outputs.

Stored by column, a block's scale stands in each of its 128 columns. `fp8_block64` is the same weight cut into blocks of
64 inputs, two of which have the scale of the block of 128 they come from: for shards of inputs that begin inside one.
Rounds a block of inputs of a column to nearest with scale = largest / 448.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import (
    E4M3_MAX,
    bits_float,
    float_bits,
    from_e4m3,
    largest,
    no_zero,
    over_inputs,
    to_e4m3,
)


def _format(group: int, *finer_than: str) -> Format:
    def decode(numbers: Numbers) -> np.ndarray:
        values = from_e4m3(numbers["codes"])
        return values * over_inputs(bits_float(numbers["scale"]), group, values.shape[1])

    def nearest(values: np.ndarray) -> dict[str, np.ndarray]:
        scale = no_zero(largest(values, group) / np.float32(E4M3_MAX))
        codes = to_e4m3(values / over_inputs(scale, group, values.shape[1]))
        return {"codes": codes, "scale": float_bits(scale)}

    sections = Section("codes", 8, 1), Section("scale", 32, group)
    return Format(f"fp8_block{group}", sections, decode, nearest, finer_than)


FORMATS = (_format(128), _format(64, "fp8_block128"))
