"""A decode step of Kimi K3 in float64 numpy, written from the model's published definition alone.

It takes a checkpoint's tensors by their names, [out, in], and shares nothing with schedc. One sequence, one token at a
time. Latent attention is absorbed: scores are taken in the latent space.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@dataclass(frozen=True)
class Sizes:
    """`latent_layers` are counted from 0; every other layer has delta attention, the first has no experts."""

    layers: int
    latent_layers: frozenset[int]
    delta_heads: int
    heads: int
    nope_dim: int
    rope_dim: int
    kv_rank: int
    top_k: int
    block: int
    eps: float = 1e-5
    latent_eps: float = 1e-6


@dataclass
class KimiK3:
    tensors: Mapping[str, np.ndarray]
    sizes: Sizes
    states: dict[int, np.ndarray] = field(default_factory=dict)
    """By layer, [heads, value_dim, key_dim]."""
    inputs: dict[str, list[np.ndarray]] = field(default_factory=dict)
    """Of every short convolution the last three inputs, the oldest first."""
    cached: dict[int, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)
    """By layer, the latent and the shared key of every token."""

    def step(self, token: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Logits [vocab] behind the next token of the sequence, and the running sum behind every layer."""
        prefix: np.ndarray | None = self.of("model.embed_tokens.weight")[token]
        blocks: list[np.ndarray] = []
        outputs = []
        for layer in range(self.sizes.layers):
            at = f"model.layers.{layer}"
            assert prefix is not None
            h = self.mixture(f"{at}.self_attention_res", prefix, blocks) if blocks else prefix
            if layer % self.sizes.block == 0:
                blocks, prefix = [*blocks, prefix], None
            u = self.rms(f"{at}.input_layernorm", h, self.sizes.eps)
            attention = self.latent_attention if layer in self.sizes.latent_layers else self.delta_attention
            a = attention(layer, u)
            prefix = a if prefix is None else prefix + a
            h = self.mixture(f"{at}.mlp_res", prefix, blocks)
            x = self.rms(f"{at}.post_attention_layernorm", h, self.sizes.eps)
            prefix = prefix + (self.feed_forward(f"{at}.mlp", x) if layer == 0 else self.experts(layer, x))
            outputs.append(prefix)
        assert prefix is not None
        h = self.mixture("model.output_attn_res", prefix, blocks)
        return self.of("lm_head.weight") @ self.rms("model.norm", h, self.sizes.eps), outputs

    def delta_attention(self, layer: int, u: np.ndarray) -> np.ndarray:
        at, heads = f"model.layers.{layer}.self_attn", self.sizes.delta_heads
        q, k, v = (
            self.convolved(f"{at}.{side}", self.dot(f"{at}.{side}_proj", u)).reshape(heads, -1) for side in "qkv"
        )
        q = q / np.sqrt((q * q).sum(1, keepdims=True) + 1e-6) * q.shape[1] ** -0.5
        k = k / np.sqrt((k * k).sum(1, keepdims=True) + 1e-6)
        f = self.dot(f"{at}.f_b_proj", self.dot(f"{at}.f_a_proj", u)) + self.of(f"{at}.dt_bias")
        rate = np.exp(self.of(f"{at}.A_log")[:heads])  # The checkpoint has more entries than heads.
        g = -5 * sigmoid(rate[:, None] * f.reshape(heads, -1))
        beta = sigmoid(self.dot(f"{at}.b_proj", u))
        z = self.dot(f"{at}.g_proj", u).reshape(heads, -1)
        states = self.states.setdefault(layer, np.zeros((heads, v.shape[1], k.shape[1])))
        out = np.empty_like(v)
        for head in range(heads):
            decayed = states[head] @ np.diag(np.exp(g[head]))
            change = beta[head] * (v[head] - decayed @ k[head])
            states[head] = decayed + np.outer(change, k[head])
            out[head] = self.rms(f"{at}.o_norm", states[head] @ q[head], self.sizes.eps) * sigmoid(z[head])
        return self.dot(f"{at}.o_proj", out.reshape(-1))

    def convolved(self, name: str, x: np.ndarray) -> np.ndarray:
        filters = self.of(f"{name}_conv1d.weight")[:, 0]
        earlier = self.inputs.setdefault(name, [np.zeros_like(x)] * (filters.shape[1] - 1))
        y = sum(filters[:, tap] * value for tap, value in enumerate([*earlier, x]))
        self.inputs[name] = [*earlier[1:], x]
        return y * sigmoid(y)

    def latent_attention(self, layer: int, u: np.ndarray) -> np.ndarray:
        sizes, at = self.sizes, f"model.layers.{layer}.self_attn"
        c_q = self.rms(f"{at}.q_a_layernorm", self.dot(f"{at}.q_a_proj", u), sizes.latent_eps)
        queries = self.dot(f"{at}.q_b_proj", c_q).reshape(sizes.heads, -1)
        compressed = self.dot(f"{at}.kv_a_proj_with_mqa", u)
        latent = self.rms(f"{at}.kv_a_layernorm", compressed[: sizes.kv_rank], sizes.latent_eps)
        cached = self.cached.setdefault(layer, [])
        cached.append((latent, compressed[sizes.kv_rank :]))
        latents, shared = (np.stack(side) for side in zip(*cached, strict=True))
        expand = self.of(f"{at}.kv_b_proj.weight").reshape(sizes.heads, -1, sizes.kv_rank)
        outs = []
        for query, both in zip(queries, expand, strict=True):
            in_latent = both[: sizes.nope_dim].T @ query[: sizes.nope_dim]
            scores = (latents @ in_latent + shared @ query[sizes.nope_dim :]) * (
                sizes.nope_dim + sizes.rope_dim
            ) ** -0.5
            outs.append(both[sizes.nope_dim :] @ (softmax(scores) @ latents))
        return self.dot(f"{at}.o_proj", np.concatenate(outs) * sigmoid(self.dot(f"{at}.g_proj", u)))

    def experts(self, layer: int, x: np.ndarray) -> np.ndarray:
        at = f"model.layers.{layer}.block_sparse_moe"
        s = sigmoid(self.dot(f"{at}.gate", x))
        chosen = np.argsort(-(s + self.of(f"{at}.gate.e_score_correction_bias")), kind="stable")[: self.sizes.top_k]
        weights = s[chosen] / (s[chosen].sum() + 1e-20)
        y = self.dot(f"{at}.routed_expert_down_proj", x)
        total = np.zeros_like(y)
        for expert, weight in zip(chosen, weights, strict=True):
            w1, w2, w3 = (self.mxfp4(f"{at}.experts.{expert}.{name}") for name in ("w1", "w2", "w3"))
            total = total + weight * (w2 @ situ(w1 @ y, w3 @ y))
        normed = self.rms(f"{at}.routed_expert_norm", total, self.sizes.eps)
        return self.dot(f"{at}.routed_expert_up_proj", normed) + self.feed_forward(f"{at}.shared_experts", x)

    def feed_forward(self, at: str, x: np.ndarray) -> np.ndarray:
        return self.dot(f"{at}.down_proj", situ(self.dot(f"{at}.gate_proj", x), self.dot(f"{at}.up_proj", x)))

    def mixture(self, at: str, prefix: np.ndarray, blocks: list[np.ndarray]) -> np.ndarray:
        sources = np.stack([*blocks, prefix])
        query = self.of(f"{at}_norm.weight") * self.of(f"{at}_proj.weight")[0]
        return softmax(sources @ query / np.sqrt((sources**2).mean(1) + 1e-5)) @ sources

    def mxfp4(self, name: str) -> np.ndarray:
        packed, scale = self.tensors[f"{name}.weight_packed"], self.tensors[f"{name}.weight_scale"]
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
        values = np.where(codes & 8, -1.0, 1.0) * E2M1[codes & 7]
        return values * np.repeat(2.0 ** (scale.astype(int) - 127), 32, axis=1)

    def rms(self, name: str, x: np.ndarray, eps: float) -> np.ndarray:
        return self.of(f"{name}.weight") * x / np.sqrt((x * x).mean() + eps)

    def dot(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.of(f"{name}.weight") @ x

    def of(self, name: str) -> np.ndarray:
        return self.tensors[name].astype(np.float64)


def situ(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    return 4 * np.tanh(gate / 4) * sigmoid(gate) * 25 * np.tanh(up / 25)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()
