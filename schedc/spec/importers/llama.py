"""Llama 2 and 3, SmolLM2 and others of model type `llama`."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def llama(config: Config, name: str) -> dict[str, Any]:
    mixer = attention(config, grouped=False)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    if config.default("rope_interleaved", bool, False):
        mixer["rope"]["pairs"] = "adjacent"
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    norm = rms_norm(config)
    feed_forward = dense(config, gated=True, bias=config.default("mlp_bias", bool, False))
    block = {"mixer": mixer, "feed_forward": feed_forward, "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
