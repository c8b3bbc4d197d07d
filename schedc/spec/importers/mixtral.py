"""Mixtral: Mistral with experts in every layer, two of which a token goes to."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def mixtral(config: Config, name: str) -> dict[str, Any]:
    config.ignore("output_router_logits", "router_aux_loss_coef", "router_jitter_noise")
    mixer = attention(config)
    mixer["rope"] = rope(config, default_theta=1_000_000.0, head_dim=mixer["head_dim"])
    mixer["window"] = config.optional("sliding_window", int)
    norm = rms_norm(config)
    expert = dense(config, gated=True)
    feed_forward = {
        "kind": "moe",
        "experts": config.required("num_local_experts", int),
        "top_k": config.required("num_experts_per_tok", int),
        "router": {"score": "softmax", "renormalise": True},
        "width": expert["width"],
        "activation": expert["activation"],
    }
    block = {"mixer": mixer, "feed_forward": feed_forward, "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
