"""Quantised weights as checkpoints hold them, in several tensors each; one way of storing them a file."""

from collections.abc import Mapping

import numpy as np

from schedc.errors import UserError
from schedc.weights.checkpoints import block_fp8, compressed_tensors, gpt_oss, modelopt
from schedc.weights.checkpoints.quantised import Found, QuantisedStack, QuantisedTensor

READERS = (gpt_oss.read, block_fp8.read, modelopt.read, compressed_tensors.read)

UNUSED = (
    ".input_scale",
    ".input_global_scale",
    ".input_amax",
    ".k_scale",
    ".v_scale",
    ".weight_shape",
    ".weight_g_idx",
)
"""Endings of tensors that say how activations are quantised, which are not here, or what their weights' shapes say."""

Tensors = dict[str, np.ndarray | QuantisedTensor | QuantisedStack]


def with_quantised(tensors: Mapping[str, np.ndarray], where: str) -> Tensors:
    """The tensors, with those of each quantised weight in one, under the name of a weight that is not quantised.

    Raises UserError for numbers that are not floating-point and belong to no known way of storing weights.
    """
    result: Tensors = {}
    used: set[str] = set()
    for name in tensors:
        for read in READERS:
            found: Found | None = read(name, tensors)
            if found is not None:
                result[found.name] = found.tensor
                used |= found.parts
                break
    left = {name: values for name, values in tensors.items() if name not in used and not name.endswith(UNUSED)}
    for name, values in left.items():
        if values.dtype.name not in ("float64", "float32", "float16", "bfloat16"):
            raise UserError(f"{where}: {name} holds {values.dtype.name} numbers, and no scales for them are known")
    return result | left
