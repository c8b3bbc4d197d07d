"""Mistral: Llama with an optional sliding window on every layer."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, model, rms_norm
from schedc.spec.importers.rope import rope


def mistral(config: Config, name: str) -> dict[str, Any]:
    mixer = attention(config)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["window"] = config.optional("sliding_window", int)
    norm = rms_norm(config)
    block = {"mixer": mixer, "feed_forward": dense(config, gated=True), "norm": norm}
    return model(config, name, [block] * config.required("num_hidden_layers", int), norm, tied=False)
