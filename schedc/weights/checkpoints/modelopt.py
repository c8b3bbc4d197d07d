"""nvfp4 of TensorRT Model Optimizer: `weight` u8 with two codes a byte, `weight_scale` e4m3, `weight_scale_2` f32."""

from collections.abc import Mapping

import numpy as np

from schedc.weights.checkpoints.quantised import Found, Outputs, QuantisedTensor, by_output, nibbles, rows_of


def read(name: str, tensors: Mapping[str, np.ndarray]) -> Found | None:
    if not name.endswith(".weight_scale_2"):
        return None
    weight, scale = name.removesuffix("_scale_2"), name.removesuffix("_2")
    packed, scales, tensor_scale = tensors[weight], tensors[scale], tensors[name]

    def numbers(rows: Outputs) -> dict[str, np.ndarray]:
        return {
            "codes": nibbles(rows_of(packed, rows)),
            "scale": rows_of(scales, rows).view(np.uint8),
            "tensor": by_output(tensor_scale, rows),
        }

    tensor = QuantisedTensor("nvfp4", range(len(packed)), 2 * packed.shape[1], numbers)
    return Found(weight, tensor, frozenset({name, weight, scale}))
