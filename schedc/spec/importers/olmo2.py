"""OLMo 2: norms after the mixer and the feed-forward; q and k are normalised over all their heads jointly."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def olmo2(config: Config, name: str) -> dict[str, Any]:
    norm = rms_norm(config)
    mixer = attention(config, grouped=False) | {"qk_norm": norm, "qk_norm_over": "heads"}
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    block = {"mixer": mixer, "feed_forward": dense(config, gated=True), "norm": norm, "placement": "post"}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
