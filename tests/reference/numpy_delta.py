"""Mixers with a state in numpy: one token, then one head at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.kda import Kda

if TYPE_CHECKING:
    from numpy_decoder import NumpyDecoder


def kimi_delta(decoder: NumpyDecoder, mixer: Kda, prefix: str, x: np.ndarray, kept: dict) -> np.ndarray:
    """[tokens, hidden]; the inputs of the convolutions and the states of earlier tokens are in `kept`."""
    decay_input = decoder.dot(decoder.dot(x, f"{prefix}.decay_a"), f"{prefix}.decay_b")
    decay_input = (decay_input + decoder.weights[f"{prefix}.decay_bias"]).reshape(len(x), mixer.heads, mixer.key_dim)
    scale = np.exp(decoder.weights[f"{prefix}.decay_scale"])
    if mixer.decay.kind == "softplus":
        log_decay = -scale[:, None] * np.log1p(np.exp(decay_input))
    else:
        log_decay = -mixer.decay.bound / (1 + np.exp(-scale[:, None] * decay_input))
    out = delta_heads(decoder, mixer, mixer.heads, mixer.heads, np.exp(log_decay), prefix, x, kept)
    gate = "gate" if mixer.gate_rank is None else "gate_b"
    z = decoder.dot(x if mixer.gate_rank is None else decoder.dot(x, f"{prefix}.gate_a"), f"{prefix}.{gate}")
    return decoder.dot(out / (1 + np.exp(-z)), f"{prefix}.o")


def gated_delta(decoder: NumpyDecoder, mixer: GatedDelta, prefix: str, x: np.ndarray, kept: dict) -> np.ndarray:
    """[tokens, hidden]; as above."""
    decay_input = decoder.dot(x, f"{prefix}.decay")  # With its bias.
    log_decay = -np.exp(decoder.weights[f"{prefix}.decay_scale"]) * np.log1p(np.exp(decay_input))
    decay = np.repeat(np.exp(log_decay)[:, :, None], mixer.key_dim, axis=2)
    out = delta_heads(decoder, mixer, mixer.key_heads, mixer.value_heads, decay, prefix, x, kept)
    z = decoder.dot(x, f"{prefix}.gate")
    return decoder.dot(out * z / (1 + np.exp(-z)), f"{prefix}.o")


def delta_heads(
    decoder: NumpyDecoder,
    mixer: Kda | GatedDelta,
    key_heads: int,
    heads: int,
    decay: np.ndarray,
    prefix: str,
    x: np.ndarray,
    kept: dict,
) -> np.ndarray:
    """The normalised outputs of all heads side by side; `decay` [tokens, heads, key_dim]."""
    sides = {side: convolved(decoder, prefix, side, mixer.conv, x, kept) for side in "qkv"}
    states = kept.setdefault(f"{prefix}.states", [np.zeros((mixer.key_dim, mixer.value_dim), np.float32)] * heads)
    beta = 1 / (1 + np.exp(-decoder.dot(x, f"{prefix}.beta")))
    out = np.empty((len(x), heads, mixer.value_dim), np.float32)
    for token in range(len(x)):
        for head in range(heads):
            own = head // (heads // key_heads)
            q, k = (sides[side][token].reshape(key_heads, -1)[own] for side in "qk")
            v = sides["v"][token].reshape(heads, -1)[head]
            q = q / np.sqrt(q @ q + np.float32(mixer.qk_eps)) / np.sqrt(np.float32(mixer.key_dim))
            k = k / np.sqrt(k @ k + np.float32(mixer.qk_eps))
            state = decay[token, head][:, None] * states[head]
            states[head] = state + np.outer(k, beta[token, head] * (v - k @ state))
            out[token, head] = q @ states[head]
    normed = decoder.norm(mixer.output_norm, f"{prefix}.output_norm", f"{prefix}.output_norm_bias", out)
    return normed.reshape(len(x), -1)


def convolved(decoder: NumpyDecoder, prefix: str, side: str, conv: int, x: np.ndarray, kept: dict) -> np.ndarray:
    """silu of the causal convolution of a projection, [tokens, channels]."""
    now = decoder.dot(x, f"{prefix}.{side}")
    before = kept.get(f"{prefix}.{side}_inputs", np.zeros((conv - 1, now.shape[1]), np.float32))
    inputs = np.vstack([before, now])
    kept[f"{prefix}.{side}_inputs"] = inputs[len(now) :]
    filters = decoder.weights[f"{prefix}.{side}_conv"]
    y = sum(filters[:, tap] * inputs[tap : tap + len(now)] for tap in range(conv))
    return y / (1 + np.exp(-y))
