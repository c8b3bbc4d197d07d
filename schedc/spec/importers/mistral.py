"""Mistral: Llama with an optional sliding window on every layer."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def mistral(config: Config, name: str) -> dict[str, Any]:
    mixer = attention(config)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["window"] = config.nullable("sliding_window", int, 4096)
    norm = rms_norm(config)
    block = {"mixer": mixer, "feed_forward": dense(config, gated=True), "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
