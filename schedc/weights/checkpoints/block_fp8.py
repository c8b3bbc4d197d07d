"""fp8 with `weight_scale_inv`, an f32 factor a block of 128×128: DeepSeek-V3, Kimi-K2, Qwen3-FP8, MiniMax-M2.

The name is that of a divisor of the original; dequantising multiplies by it (DeepSeek-V3, inference/kernel.py).
"""

from collections.abc import Mapping

import numpy as np

from schedc.errors import UserError
from schedc.weights.checkpoints.quantised import Found, Outputs, QuantisedTensor, rows_of

BLOCK = 128
SUFFIX = ".weight_scale_inv"


def read(name: str, tensors: Mapping[str, np.ndarray]) -> Found | None:
    if not name.endswith(SUFFIX):
        return None
    weight = f"{name.removesuffix(SUFFIX)}.weight"
    codes, scales = tensors[weight], tensors[name]
    outputs, inputs = codes.shape
    blocks = -(-outputs // BLOCK), -(-inputs // BLOCK)
    if codes.dtype.name != "float8_e4m3fn" or scales.shape != blocks:
        raise UserError(
            f"{weight}: {codes.dtype.name}{list(codes.shape)} with scales {list(scales.shape)}; blocks of 128×128 of "
            f"float8_e4m3fn would have {list(blocks)}"
        )

    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        own = np.asarray(scales[np.asarray(rows) // BLOCK], np.float32)
        return {"codes": rows_of(codes, rows).view(np.uint8), "scale": np.ascontiguousarray(own).view(np.uint32)}

    tensor = QuantisedTensor("fp8_block128", range(outputs), inputs, numbers)
    return Found(weight, tensor, frozenset({name, weight}))
