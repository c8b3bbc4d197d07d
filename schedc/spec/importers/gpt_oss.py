"""gpt-oss: sinks in attention, windows by turns, biases everywhere, experts with a clamped SwiGLU."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, layer_count, layer_windows, model, rms_norm
from schedc.spec.importers.rope import rope

_SIGMOID_GAIN = 1.702  # what swiglu_clamped has


def gpt_oss(config: Config, name: str) -> dict[str, Any]:
    config.ignore("router_aux_loss_coef", "output_router_logits")
    config.must_be("hidden_act", ["silu"], "the experts' clamped SwiGLU is built on silu")
    config.must_be("swiglu_alpha", [_SIGMOID_GAIN], f"the clamped SwiGLU is known with {_SIGMOID_GAIN}")
    mixer = attention(config) | {"sinks": True}
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, True))
    mixer["rope"] = turning = rope(config, default_theta=150_000.0, head_dim=mixer["head_dim"])
    first = (turning.get("scaling") or {}).get("original_max_position")
    config.must_be("initial_context_length", [first], "disagrees with rope_scaling.original_max_position_embeddings")
    norm = rms_norm(config)
    experts = _experts(config)
    layers = layer_count(config)
    default = ["full_attention" if layer % 2 else "sliding_attention" for layer in range(layers)]
    blocks = [
        {"mixer": mixer | {"window": window}, "feed_forward": experts, "norm": norm}
        for window in layer_windows(config, default, config.nullable("sliding_window", int, 128))
    ]
    return model(config, name, blocks, norm, tied=False)


def _experts(config: Config) -> dict[str, Any]:
    top_k = config.required("num_experts_per_tok", int)
    config.must_be("experts_per_token", [top_k], f"disagrees with num_experts_per_tok {top_k}")
    return {
        "kind": "moe",
        "experts": config.required("num_local_experts", int),
        "top_k": top_k,
        "router": {"score": "softmax_of_chosen", "bias": True, "renormalise": False},
        "width": config.required("intermediate_size", int),
        "activation": "swiglu_clamped",
        "limit": config.default("swiglu_limit", float, 7.0),
        "bias": {"gate": True, "up": True, "down": True},
    }
