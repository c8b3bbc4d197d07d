"""A decoder in numpy, one head at a time: the dumb twin of the reference and of kernels.

`Rounding` says where numbers are rounded to bf16; `KERNEL` has the rounding points of a kernel with bf16 weights.
"""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np
from ml_dtypes import bfloat16

from schedc.spec.feed_forwards.dense import Dense
from schedc.spec.feed_forwards.moe import Moe
from schedc.spec.mixers import Mixer
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import Block, ModelSpec
from schedc.spec.norm import Norm
from schedc.spec.residuals.block_attention import BlockAttentionResidual
from schedc.spec.rope import inverse_frequencies
from schedc.weights.source import WeightSource
from tests.reference.numpy_blocks import through_blocks
from tests.reference.numpy_delta import gated_delta, kimi_delta
from tests.reference.numpy_experts import experts
from tests.reference.numpy_latent import latent_attention


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
            self.weights[name] = bf16(values, rounding.weights and values.ndim == 2 and not name.endswith("_conv"))

    def logits(self, tokens: list[int]) -> np.ndarray:
        """f32[tokens, vocab]: after every token, what may come next."""
        return self.extend(tokens, {})

    def greedy(self, tokens: list[int], count: int) -> list[int]:
        """The `count` most likely tokens after `tokens`; of equals the lowest."""
        kept: Kept = {}
        logits = self.extend(tokens, kept)
        out = [int(logits[-1].argmax())]
        while len(out) < count:
            out.append(int(self.extend(out[-1:], kept)[0].argmax()))
        return out

    def extend(self, tokens: list[int], kept: "Kept") -> np.ndarray:
        """f32[tokens, vocab] of tokens that come after those in `kept`; their k and v are added to it."""
        spec = self.spec
        x = self.weights["embed"][tokens] * np.float32(spec.embedding.multiplier)
        if spec.embedding.norm is not None:
            x = self.norm(spec.embedding.norm, "embedding_norm.weight", "embedding_norm.bias", x)
        if isinstance(spec.residual, BlockAttentionResidual):
            x = through_blocks(self, x, kept)
        else:
            for at in spec.iter_layers():
                x = self.layer(at.block, f"layers.{at.layer}", x, kept)
        x = self.norm(spec.final_norm, "final_norm.weight", "final_norm.bias", x)
        logits = self.dot(x, "embed" if spec.embedding.tied else "head")
        if spec.head.bias:
            logits = logits + self.weights["head_bias"]
        return capped(logits * np.float32(spec.head.multiplier), spec.head.soft_cap)

    def layer(self, block: Block, prefix: str, x: np.ndarray, kept: "Kept") -> np.ndarray:
        for part in ("mixer", "feed_forward"):
            x = self.residual(f"{prefix}.{part}_residual", x, self.half(block, part, prefix, x, kept))
        return x

    def half(self, block: Block, part: str, prefix: str, y: np.ndarray, kept: "Kept") -> np.ndarray:
        """Mixer or feed-forward, with its norms."""
        if block.placement != "post":
            name = f"{prefix}.pre_{part}_norm"
            y = self.norm(block.norm, f"{name}.weight", f"{name}.bias", y)
        if part == "mixer":
            y = self.attention(block.mixer, f"{prefix}.attn", y, kept)
        else:
            y = self.feed_forward(block, f"{prefix}.mlp", y)
        if block.placement != "pre":
            name = f"{prefix}.post_{part}_norm"
            second = block.feed_forward_output_norm if part == "feed_forward" else None
            norm = second or block.output_norm or block.norm
            y = self.norm(norm, f"{name}.weight", f"{name}.bias", y)
        return y

    def residual(self, prefix: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        residual = self.spec.residual
        if residual.kind == "plain":
            return x + np.float32(residual.multiplier) * y
        w = self.weights[f"{prefix}.gate"] / np.float32(residual.temperature)
        share = 1 / (1 + np.exp(-w))
        return np.sqrt(np.maximum((1 + share) / (1 + np.exp(w)), np.float32(residual.floor))) * x + share * y

    def attention(self, mixer: Mixer, prefix: str, x: np.ndarray, kept: "Kept") -> np.ndarray:
        if isinstance(mixer, Mla):
            return latent_attention(self, mixer, prefix, x, kept)
        if isinstance(mixer, GatedDelta):
            return gated_delta(self, mixer, prefix, x, kept)
        if isinstance(mixer, Kda):
            return kimi_delta(self, mixer, prefix, x, kept)
        kept_heads = kept.setdefault(prefix, [(NONE, NONE)] * mixer.kv_heads)
        tokens, past = len(x), len(kept_heads[0][0])
        at = np.arange(past, past + tokens)

        def heads_of(side: str, rotates: bool) -> list[np.ndarray]:
            heads = np.split(self.dot(x, f"{prefix}.{side}"), getattr(mixer, SIDES[side]), axis=1)
            if rotates and not mixer.qk_norm_after_rope:
                heads = self.normed_heads(mixer, f"{prefix}.{side}_norm", heads)
            if rotates and mixer.rope is not None:
                heads = [turned(head, mixer, at) for head in heads]
            if rotates and mixer.qk_norm_after_rope:
                heads = self.normed_heads(mixer, f"{prefix}.{side}_norm", heads)
            return heads

        for head, (k, v) in enumerate(zip(heads_of("k", True), heads_of("v", False), strict=True)):
            new = bf16(k, self.rounding.cache), bf16(v, self.rounding.cache)
            old = kept_heads[head]
            kept_heads[head] = new if not past else (np.vstack([old[0], new[0]]), np.vstack([old[1], new[1]]))
        distance = at[:, None] - np.arange(past + tokens)
        hidden = (distance < 0) | (distance >= (mixer.window or 1 << 30))
        if mixer.chunk is not None:
            hidden |= (at // mixer.chunk)[:, None] != np.arange(past + tokens) // mixer.chunk
        outs = []
        for head, q in enumerate(heads_of("q", True)):
            keys, values = kept_heads[head // (mixer.heads // mixer.kv_heads)]
            if mixer.temperature is not None:
                warmth = np.log(1 + (at + 1) // mixer.temperature.interval) * mixer.temperature.scale
                q = q * (1 + warmth[:, None]).astype(np.float32)
            scores = bf16(q, self.rounding.attention) @ keys.T * np.float32(mixer.score_scale)
            scores = np.where(hidden, -np.inf, capped(scores, mixer.soft_cap)).astype(np.float32)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            amount = weights.sum(1, keepdims=True)
            if mixer.sinks:
                amount = amount + np.exp(self.weights[f"{prefix}.sinks"][head] - scores.max(1, keepdims=True))
            out = bf16(weights, self.rounding.attention) @ values / amount
            if mixer.output_norm is not None:
                out = self.norm(mixer.output_norm, f"{prefix}.output_norm", f"{prefix}.output_norm_bias", out)
            outs.append(out)
        joined = np.concatenate(outs, axis=1)
        if mixer.output_gate:
            joined = joined / (1 + np.exp(-self.dot(x, f"{prefix}.gate")))
        return self.dot(joined, f"{prefix}.o")

    def normed_heads(self, mixer: Gqa, name: str, heads: list[np.ndarray]) -> list[np.ndarray]:
        if mixer.qk_norm is None:
            return heads
        if mixer.qk_norm_over == "heads":
            joined = self.norm(mixer.qk_norm, name, f"{name}_bias", np.concatenate(heads, axis=1))
            return np.split(joined, len(heads), axis=1)
        return [self.norm(mixer.qk_norm, name, f"{name}_bias", head) for head in heads]

    def feed_forward(self, block: Block, prefix: str, x: np.ndarray) -> np.ndarray:
        if isinstance(block.feed_forward, Moe):
            return experts(self, block.feed_forward, prefix, x)
        return self.dense(block.feed_forward, prefix, x)

    def dense(self, dense: Dense, prefix: str, x: np.ndarray) -> np.ndarray:
        up = self.dot(x, f"{prefix}.up")
        if dense.gated:
            gate = self.dot(x, f"{prefix}.gate")
            if dense.activation == "situ":
                bounded = np.tanh(gate / dense.beta) * dense.beta / (1 + np.exp(-gate))
                return self.dot(bounded * np.tanh(up / dense.linear_beta) * dense.linear_beta, f"{prefix}.down")
            if dense.limit is not None:
                gate, up = np.minimum(gate, dense.limit), np.clip(up, -dense.limit, dense.limit) + 1
            return self.dot(activation(dense.activation, gate) * up, f"{prefix}.down")
        return self.dot(activation(dense.activation, up), f"{prefix}.down")

    def dot(self, x: np.ndarray, name: str) -> np.ndarray:
        """With the bias if the model has one."""
        y = bf16(x, self.rounding.dot_inputs) @ self.weights[name].T
        return y + self.weights[f"{name}_bias"] if name.startswith("layers.") and f"{name}_bias" in self.weights else y

    def norm(self, norm: Norm, weight: str, bias: str, x: np.ndarray) -> np.ndarray:
        if norm.scale_first:
            x = x * (self.weights[weight] + np.float32(norm.unit_offset))
        if norm.kind == "layer":
            x = x - x.mean(-1, keepdims=True)
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(norm.eps))
        if norm.weight and not norm.scale_first:
            y = y * (self.weights[weight] + np.float32(norm.unit_offset))
        return y + self.weights[bias] if norm.bias else y


Kept = dict[str, list[tuple[np.ndarray, np.ndarray]]]
"""k and v [tokens, head_dim] of every kv head, by layer."""

NONE = np.zeros((0, 0), np.float32)
SIDES = {"q": "heads", "k": "kv_heads", "v": "kv_heads"}


def turned(head: np.ndarray, mixer: Gqa, positions: np.ndarray) -> np.ndarray:
    """[tokens, head_dim], one pair of dimensions after the other."""
    frequencies, factor = inverse_frequencies(mixer.rope, mixer.rotary_dim)
    out = head.copy()
    for pair, frequency in enumerate(frequencies):
        if mixer.rope.pairs == "half":
            first, second = pair, pair + mixer.rotary_dim // 2
        else:
            first, second = 2 * pair, 2 * pair + 1
        cos, sin = np.cos(positions * frequency) * factor, np.sin(positions * frequency) * factor
        out[:, first] = head[:, first] * cos - head[:, second] * sin
        out[:, second] = head[:, second] * cos + head[:, first] * sin
    return out


def capped(values: np.ndarray, cap: float | None) -> np.ndarray:
    return values if cap is None else np.float32(cap) * np.tanh(values / np.float32(cap))


def activation(kind: str, x: np.ndarray) -> np.ndarray:
    match kind:
        case "silu":
            return x / (1 + np.exp(-x))
        case "gelu":
            return x * (1 + np.vectorize(erf, [np.float32])(x / np.float32(sqrt(2)))) / 2
        case "gelu_tanh":
            return x * (1 + np.tanh(np.float32(sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3))) / 2
        case "relu":
            return np.maximum(x, 0)
        case "relu2":
            return np.maximum(x, 0) ** 2
        case "swiglu_clamped":
            return x / (1 + np.exp(np.float32(-1.702) * x))
    raise KeyError(kind)
