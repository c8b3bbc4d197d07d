"""int4 with a bf16 scale a group of 32, 64 or 128 inputs of a column: w = code · scale, code −8 … 7.

Rounds a group to nearest with scale = largest / 7, itself rounded to bf16.
"""

import numpy as np

from schedc.weights.formats.format import Format, Numbers, Section
from schedc.weights.formats.rounding import largest, no_zero, over_inputs
from schedc.weights.words import from_bits, to_bits


def _format(group: int, *finer_than: str) -> Format:
    def decode(numbers: Numbers) -> np.ndarray:
        codes = (numbers["codes"] << 4).view(np.int8) >> 4
        return codes.astype(np.float32) * over_inputs(from_bits(numbers["scale"], "bf16"), group, codes.shape[1])

    def nearest(values: np.ndarray) -> dict[str, np.ndarray]:
        scale = to_bits(no_zero(largest(values, group) / np.float32(7)), "bf16")
        codes = np.rint(values / over_inputs(from_bits(scale, "bf16"), group, values.shape[1]))
        return {"codes": np.clip(codes, -8, 7).astype(np.int8).view(np.uint8) & 15, "scale": scale}

    sections = Section("codes", 4, 1), Section("scale", 16, group)
    return Format(f"int4_g{group}", sections, decode, nearest, finer_than)


FORMATS = (_format(128), _format(64, "int4_g128"), _format(32, "int4_g64", "int4_g128"))
