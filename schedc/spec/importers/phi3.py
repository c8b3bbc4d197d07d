"""Phi-3 and 3.5: Llama with an optional window, and longrope for long contexts."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def phi3(config: Config, name: str) -> dict[str, Any]:
    config.ignore("original_max_position_embeddings")  # read by longrope alone
    config.must_be("attention_bias", [False], "Phi-3 has no attention bias")
    mixer = attention(config, grouped=False)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["window"] = config.optional("sliding_window", int)
    norm = rms_norm(config)
    block = {"mixer": mixer, "feed_forward": dense(config, gated=True), "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
