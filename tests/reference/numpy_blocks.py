"""Block attention residuals in numpy: the sums of the blocks are a list that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy_decoder import NumpyDecoder


def through_blocks(decoder: NumpyDecoder, x: np.ndarray, kept: dict) -> np.ndarray:
    """What the final norm reads, [tokens, hidden], of the embedded tokens."""
    blocks: list[np.ndarray] = []
    total: np.ndarray | None = x
    for at in decoder.spec.iter_layers():
        prefix = f"layers.{at.layer}"
        y = mixture(decoder, f"{prefix}.mixer_residual", [*blocks, total]) if blocks else total
        if at.layer % decoder.spec.residual.block == 0:
            blocks.append(total)
            total = None
        y = decoder.half(at.block, "mixer", prefix, y, kept)
        total = y if total is None else total + y
        y = mixture(decoder, f"{prefix}.feed_forward_residual", [*blocks, total])
        total = total + decoder.half(at.block, "feed_forward", prefix, y, kept)
    return mixture(decoder, "final_residual", [*blocks, total])


def mixture(decoder: NumpyDecoder, prefix: str, sources: list[np.ndarray]) -> np.ndarray:
    """[tokens, hidden], one token at a time."""
    query = decoder.weights[f"{prefix}.norm"] * decoder.weights[f"{prefix}.query"]
    out = np.empty_like(sources[0])
    for token in range(len(out)):
        lengths = [np.sqrt((v[token] ** 2).mean() + np.float32(decoder.spec.residual.eps)) for v in sources]
        scores = np.array([query @ v[token] / length for v, length in zip(sources, lengths, strict=True)])
        shares = np.exp(scores - scores.max())
        out[token] = sum(share * v[token] for share, v in zip(shares / shares.sum(), sources, strict=True))
    return out
