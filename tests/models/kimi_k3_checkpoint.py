"""Weights of a scaled-down Kimi K3 as its checkpoint has them: names, shapes, packing."""

from collections.abc import Iterator

import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.source import WeightSource
from tests.weights.kimi_checkpoint import EXPERT, LAYER, MODEL

A_LOG_PADDING = 4
"""Entries of A_log behind those of the heads, which nothing may read."""


def checkpoint(spec: ModelSpec, source: WeightSource) -> dict[str, np.ndarray]:
    """Every tensor, by its name without the wrapper's prefix."""
    return {tensor: values for name in source.names() for tensor, values in _tensors(name, source)}


def _tensors(name: str, source: WeightSource) -> Iterator[tuple[str, np.ndarray]]:
    if name in MODEL:
        values = source.load(name)
        yield MODEL[name], values[None] if name.endswith("query") else values
        return
    _, layer, own = name.split(".", 2)
    at = f"model.layers.{layer}"
    if ".experts." in own:
        _, _, expert, side = own.split(".")
        numbers = source.numbers(name, (0, source.shape(name)[0]))
        tensor = f"{at}.block_sparse_moe.experts.{expert}.{EXPERT[side]}"
        yield f"{tensor}.weight_packed", numbers["codes"][:, 0::2] | numbers["codes"][:, 1::2] << 4
        yield f"{tensor}.weight_scale", numbers["scale"]
        return
    values = source.load(name)
    if own.endswith("query"):
        values = values[None]
    if own.endswith("_conv"):
        values = values[:, None]
    if own == "attn.decay_scale":
        values = np.concatenate([values, np.full(A_LOG_PADDING, np.nan, np.float32)])
    yield f"{at}.{LAYER[own]}", values
