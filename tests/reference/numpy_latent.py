"""Latent attention in numpy, one head at a time, keys and values expanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedc.spec.mixers.mla import Mla
from schedc.spec.rope import inverse_frequencies

if TYPE_CHECKING:
    from numpy_decoder import NumpyDecoder


def latent_attention(decoder: NumpyDecoder, mixer: Mla, prefix: str, x: np.ndarray, kept: dict) -> np.ndarray:
    """[tokens, hidden]; latents and shared keys of earlier tokens are in `kept`, these tokens' are added to it."""
    if mixer.q_rank is None:
        q = decoder.dot(x, f"{prefix}.q")
    else:
        q = decoder.dot(x, f"{prefix}.q_a")
        if mixer.q_norm is not None:
            q = decoder.norm(mixer.q_norm, f"{prefix}.q_a_norm", f"{prefix}.q_a_norm_bias", q)
        q = decoder.dot(q, f"{prefix}.q_b")
    compressed = decoder.dot(x, f"{prefix}.kv_a")
    latent = decoder.norm(
        mixer.kv_norm, f"{prefix}.kv_a_norm", f"{prefix}.kv_a_norm_bias", compressed[:, : mixer.kv_rank]
    )
    past = len(kept[prefix][0]) if prefix in kept else 0
    at = np.arange(past, past + len(x))
    new = latent, turned(compressed[:, mixer.kv_rank :], mixer, at)
    kept[prefix] = new if not past else tuple(np.vstack(pair) for pair in zip(kept[prefix], new, strict=True))
    latents, keys = kept[prefix]
    outs = []
    width = mixer.nope_dim + mixer.value_dim
    for head in range(mixer.heads):
        expand = decoder.weights[f"{prefix}.kv_b"][head * width : (head + 1) * width]
        own = q[:, head * mixer.head_dim : (head + 1) * mixer.head_dim]
        scores = own[:, : mixer.nope_dim] @ (latents @ expand[: mixer.nope_dim].T).T
        scores = (scores + turned(own[:, mixer.nope_dim :], mixer, at) @ keys.T) * np.float32(mixer.score_scale)
        scores = np.where(at[:, None] < np.arange(past + len(x)), -np.inf, scores).astype(np.float32)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        outs.append(weights @ (latents @ expand[mixer.nope_dim :].T) / weights.sum(1, keepdims=True))
    out = np.concatenate(outs, axis=1)
    if mixer.output_gate:
        out = out / (1 + np.exp(-decoder.dot(x, f"{prefix}.gate")))
    return decoder.dot(out, f"{prefix}.o")


def turned(x: np.ndarray, mixer: Mla, positions: np.ndarray) -> np.ndarray:
    """[tokens, rope_dim], one pair of dimensions after the other."""
    if mixer.rope is None:
        return x
    frequencies, factor = inverse_frequencies(mixer.rope, mixer.rope_dim)
    out = x.copy()
    for pair, frequency in enumerate(frequencies):
        first = pair if mixer.rope.pairs == "half" else 2 * pair
        second = first + (mixer.rope_dim // 2 if mixer.rope.pairs == "half" else 1)
        cos, sin = np.cos(positions * frequency) * factor, np.sin(positions * frequency) * factor
        out[:, first] = x[:, first] * cos - x[:, second] * sin
        out[:, second] = x[:, second] * cos + x[:, first] * sin
    return out
