"""A decoder in numpy, one token and one head at a time: the dumb twin of the reference and of kernels.

`Rounding` says where numbers are rounded to bf16; `KERNEL` has the rounding points of a kernel with bf16 weights.
"""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np
from ml_dtypes import bfloat16

from schedc.spec.mixers.gqa import Gqa
from schedc.spec.model import Block, ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.rope import inverse_frequencies
from schedc.weights.source import WeightSource


@dataclass(frozen=True)
class Rounding:
    weights: bool = False  # projections and the embedding table; norms and biases never
    dot_inputs: bool = False  # the left side of every projection, the head included
    cache: bool = False  # k and v
    attention: bool = False  # q, and exp(score - max) before it is summed with v; its own sum stays f32


EXACT = Rounding()
KERNEL = Rounding(weights=True, dot_inputs=True, cache=True, attention=True)


def bf16(values: np.ndarray, rounded: bool = True) -> np.ndarray:
    return values.astype(bfloat16).astype(np.float32) if rounded else values


class NumpyDecoder:
    def __init__(self, spec: ModelSpec, source: WeightSource, rounding: Rounding = EXACT) -> None:
        self.spec, self.rounding = spec, rounding
        self.weights = {name: source.load(name) for name in source.names()}
        for name, values in self.weights.items():
            self.weights[name] = bf16(values, rounding.weights and values.ndim == 2)

    def logits(self, tokens: list[int]) -> np.ndarray:
        """f32[tokens, vocab]: after every token, what may come next."""
        kept: Kept = {}
        return np.stack([self.step(token, position, kept) for position, token in enumerate(tokens)])

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        """The `count` most likely tokens after `tokens`; of equals the lowest."""
        kept: Kept = {}
        for position, token in enumerate(tokens):
            logits = self.step(token, position, kept)
        out: list[int] = []
        while True:
            out.append(int(logits.argmax()))
            if len(out) == count:
                return out
            logits = self.step(out[-1], len(tokens) + len(out) - 1, kept)

    def step(self, token: int, position: int, kept: "Kept") -> np.ndarray:
        """f32[vocab]; k and v of this token are added to `kept`."""
        spec = self.spec
        x = self.weights["embed"][token] * np.float32(spec.embedding.multiplier)
        for at in spec.iter_layers():
            x = self.layer(at.block, f"layers.{at.layer}", x, position, kept)
        x = self.norm(spec.final_norm, "final_norm.weight", "final_norm.bias", x)
        logits = self.dot(x, "embed" if spec.embedding.tied else "head")
        if spec.head.bias:
            logits = logits + self.weights["head_bias"]
        return capped(logits * np.float32(spec.head.multiplier), spec.head.soft_cap)

    def layer(self, block: Block, prefix: str, x: np.ndarray, position: int, kept: "Kept") -> np.ndarray:
        scale = np.float32(self.spec.residual.multiplier)
        for part in ("mixer", "feed_forward"):
            y = x
            if block.placement != "post":
                name = f"{prefix}.pre_{part}_norm"
                y = self.norm(block.norm, f"{name}.weight", f"{name}.bias", y)
            if part == "mixer":
                y = self.attention(block.mixer, f"{prefix}.attn", y, position, kept)
            else:
                y = self.feed_forward(block, f"{prefix}.mlp", y)
            if block.placement != "pre":
                name = f"{prefix}.post_{part}_norm"
                y = self.norm(block.norm, f"{name}.weight", f"{name}.bias", y)
            x = x + scale * y
        return x

    def attention(self, mixer: Gqa, prefix: str, x: np.ndarray, position: int, kept: "Kept") -> np.ndarray:
        q = self.dot(x, f"{prefix}.q").reshape(mixer.heads, mixer.head_dim)
        k = self.dot(x, f"{prefix}.k").reshape(mixer.kv_heads, mixer.head_dim)
        v = self.dot(x, f"{prefix}.v").reshape(mixer.kv_heads, mixer.head_dim)
        if mixer.qk_norm is not None:
            q = np.stack([self.norm(mixer.qk_norm, f"{prefix}.q_norm", f"{prefix}.q_norm_bias", head) for head in q])
            k = np.stack([self.norm(mixer.qk_norm, f"{prefix}.k_norm", f"{prefix}.k_norm_bias", head) for head in k])
        if mixer.rope is not None:
            q = np.stack([turned(head, mixer, position) for head in q])
            k = np.stack([turned(head, mixer, position) for head in k])
        keys, values = kept.setdefault(prefix, ([], []))
        keys.append(bf16(k, self.rounding.cache))
        values.append(bf16(v, self.rounding.cache))
        first = 0 if mixer.window is None else max(0, position - mixer.window + 1)
        heads = []
        for head in range(mixer.heads):
            kv_head = head // (mixer.heads // mixer.kv_heads)
            seen_keys = np.stack([key[kv_head] for key in keys[first:]])
            seen_values = np.stack([value[kv_head] for value in values[first:]])
            scores = seen_keys @ bf16(q[head], self.rounding.attention) * np.float32(mixer.score_scale)
            scores = capped(scores, mixer.soft_cap)
            weights = np.exp(scores - scores.max())
            heads.append(bf16(weights, self.rounding.attention) @ seen_values / weights.sum())
        return self.dot(np.concatenate(heads), f"{prefix}.o")

    def feed_forward(self, block: Block, prefix: str, x: np.ndarray) -> np.ndarray:
        up = self.dot(x, f"{prefix}.up")
        if block.feed_forward.gated:
            return self.dot(
                activation(block.feed_forward.activation, self.dot(x, f"{prefix}.gate")) * up, f"{prefix}.down"
            )
        return self.dot(activation(block.feed_forward.activation, up), f"{prefix}.down")

    def dot(self, x: np.ndarray, name: str) -> np.ndarray:
        """With the bias if the model has one."""
        y = self.weights[name] @ bf16(x, self.rounding.dot_inputs)
        return y + self.weights[f"{name}_bias"] if name.startswith("layers.") and f"{name}_bias" in self.weights else y

    def norm(self, norm: Norm, weight: str, bias: str, x: np.ndarray) -> np.ndarray:
        if norm.kind == "layer":
            x = x - x.mean()
        y = x / np.sqrt((x * x).mean() + np.float32(norm.eps))
        y = y * (self.weights[weight] + np.float32(norm.unit_offset))
        return y + self.weights[bias] if norm.bias else y


Kept = dict[str, tuple[list[np.ndarray], list[np.ndarray]]]
"""k and v [kv_heads, head_dim] of every token, by layer."""


def turned(head: np.ndarray, mixer: Gqa, position: int) -> np.ndarray:
    frequencies, factor = inverse_frequencies(mixer.rope, mixer.rotary_dim)
    out = head.copy()
    for pair, frequency in enumerate(frequencies):
        if mixer.rope.pairs == "half":
            first, second = pair, pair + mixer.rotary_dim // 2
        else:
            first, second = 2 * pair, 2 * pair + 1
        cos, sin = np.cos(position * frequency) * factor, np.sin(position * frequency) * factor
        out[first] = head[first] * cos - head[second] * sin
        out[second] = head[second] * cos + head[first] * sin
    return out


def capped(values: np.ndarray, cap: float | None) -> np.ndarray:
    return values if cap is None else np.float32(cap) * np.tanh(values / np.float32(cap))


def activation(kind: str, x: np.ndarray) -> np.ndarray:
    match kind:
        case "silu":
            return x / (1 + np.exp(-x))
        case "gelu":
            return x * np.array([(1 + erf(value / sqrt(2))) / 2 for value in x], np.float32)
        case "gelu_tanh":
            return x * (1 + np.tanh(np.float32(sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3))) / 2
        case "relu":
            return np.maximum(x, 0)
        case "relu2":
            return np.maximum(x, 0) ** 2
    raise KeyError(kind)
