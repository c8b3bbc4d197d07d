"""Gemma 2 and the text model of Gemma 3: sandwich norms, sliding and full layers by turns."""

from math import sqrt
from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, layer_windows, model, rms_norm
from schedc.spec.importers.rope import rope, ropes_by_layer_type


def gemma2(config: Config, name: str) -> dict[str, Any]:
    """Every second layer is full, the first is not."""
    mixer = _attention(config)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["soft_cap"] = config.nullable("attn_logit_softcapping", float, 50.0)
    spec = _gemma(config, name, local=mixer, full=mixer, period=2)
    return spec | {"head": {"soft_cap": config.nullable("final_logit_softcapping", float, 30.0)}}


def gemma3(config: Config, name: str) -> dict[str, Any]:
    """Every sixth layer is full; q and k are normalised per head; the sliding layers have a theta of their own."""
    mixer = _attention(config)
    mixer["qk_norm"] = rms_norm(config, unit_offset=True)
    mixer["soft_cap"] = config.optional("attn_logit_softcapping", float)
    thetas = {"full_attention": 1_000_000.0, "sliding_attention": 10_000.0}
    ropes = ropes_by_layer_type(config, default_thetas=thetas, head_dim=mixer["head_dim"])
    if ropes is None:
        local_theta = config.default("rope_local_base_freq", float, thetas["sliding_attention"])
        ropes = {
            "full_attention": rope(config, default_theta=thetas["full_attention"], head_dim=mixer["head_dim"]),
            "sliding_attention": {"theta": local_theta},
        }
    full, local = mixer | {"rope": ropes["full_attention"]}, mixer | {"rope": ropes["sliding_attention"]}
    period = config.default("sliding_window_pattern", int, config.default("_sliding_window_pattern", int, 6))
    spec = _gemma(config, name, local=local, full=full, period=max(period, 1))
    return spec | {"head": {"soft_cap": config.optional("final_logit_softcapping", float)}}


def _attention(config: Config) -> dict[str, Any]:
    mixer = attention(config, head_dim=256)
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    scalar = config.default("query_pre_attn_scalar", float, 256.0)
    if scalar <= 0:
        config.refuse("query_pre_attn_scalar", f"{scalar:g}; more than 0")
        return mixer
    return mixer if scalar == mixer["head_dim"] else mixer | {"scale": scalar**-0.5}


def _gemma(config: Config, name: str, *, local: dict[str, Any], full: dict[str, Any], period: int) -> dict[str, Any]:
    config.must_be("use_bidirectional_attention", [False], "only causal attention is supported")
    activation = config.raw("hidden_activation")
    config.must_be("hidden_act", [activation], f"disagrees with hidden_activation {activation!r}")
    layers = layer_count(config)
    norm = rms_norm(config, unit_offset=True)
    feed_forward = dense(config, gated=True, activation_key="hidden_activation")
    default = ["sliding_attention" if (layer + 1) % period else "full_attention" for layer in range(layers)]
    blocks = [
        {
            "mixer": full if window is None else local | {"window": window},
            "feed_forward": feed_forward,
            "norm": norm,
            "placement": "sandwich",
        }
        for window in layer_windows(config, default, config.nullable("sliding_window", int, 4096))
    ]
    spec = model(config, name, blocks, norm, tied=True)
    spec["embedding"]["multiplier"] = sqrt(max(spec["hidden"], 1))
    return spec
