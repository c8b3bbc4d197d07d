"""Qwen 2, 2.5 and 3, dense."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, layer_windows, model, rms_norm
from schedc.spec.importers.rope import rope


def qwen2(config: Config, name: str) -> dict[str, Any]:
    """q, k and v have a bias and o has none, which no key of the config says."""
    mixer = attention(config)
    mixer["bias"] = {"q": True, "k": True, "v": True}
    return _qwen(config, name, mixer)


def qwen3(config: Config, name: str) -> dict[str, Any]:
    """q and k are normalised per head, which no key of the config says."""
    mixer = attention(config, head_dim=128)
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    mixer["qk_norm"] = rms_norm(config)
    return _qwen(config, name, mixer)


def _qwen(config: Config, name: str, mixer: dict[str, Any]) -> dict[str, Any]:
    """With `use_sliding_window` the layers from `max_window_layers` on have a window; without it none has."""
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    layers = layer_count(config)
    window = config.optional("sliding_window", int)
    first = config.default("max_window_layers", int, 28)
    if not config.default("use_sliding_window", bool, False):
        window = None
    default = ["sliding_attention" if window and layer >= first else "full_attention" for layer in range(layers)]
    norm = rms_norm(config)
    feed_forward = dense(config, gated=True)
    blocks = [
        {"mixer": mixer | {"window": layer_window}, "feed_forward": feed_forward, "norm": norm}
        for layer_window in layer_windows(config, default, window)
    ]
    return model(config, name, blocks, norm, tied=False)
