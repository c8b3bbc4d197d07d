"""mxfp4 of all experts in one tensor: `…_blocks` u8[experts, out, groups, 16], `…_scales` u8[experts, out, groups].

A byte has two codes, the lower input in its low half (openai/gpt-oss, gpt_oss/torch/weights.py). As floating-point
numbers the same stack is [experts, in, out], so the experts are shown turned.
"""

from collections.abc import Mapping

import numpy as np

from schedc.errors import UserError
from schedc.weights.checkpoints.quantised import (
    Found,
    Outputs,
    QuantisedStack,
    QuantisedTensor,
    e8m0_checked,
    nibbles,
    rows_of,
)

GROUP = 32


def read(name: str, tensors: Mapping[str, np.ndarray]) -> Found | None:
    if not name.endswith("_blocks"):
        return None
    weight = name.removesuffix("_blocks")
    blocks, scales = tensors[name], tensors.get(f"{weight}_scales")
    if scales is None or blocks.ndim != 4 or scales.shape != blocks.shape[:3] or blocks.shape[3] != GROUP // 2:
        found = "no scales" if scales is None else f"scales {list(scales.shape)}"
        raise UserError(f"{name}: blocks {list(blocks.shape)} with {found}; expected [experts, out, in / 32, 16]")
    experts, outputs, groups, _ = blocks.shape

    def of_expert(expert: int) -> QuantisedTensor:
        def numbers(rows: Outputs) -> dict[str, np.ndarray]:
            own = rows_of(blocks[expert], rows)
            return e8m0_checked(nibbles(own.reshape(len(own), -1)), rows_of(scales[expert], rows))

        return QuantisedTensor("mxfp4", range(outputs), groups * GROUP, numbers, turned=True)

    stack = QuantisedStack(tuple(of_expert(expert) for expert in range(experts)))
    return Found(weight, stack, frozenset({name, f"{weight}_scales"}))
