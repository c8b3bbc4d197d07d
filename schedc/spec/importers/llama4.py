"""The text model of Llama 4: chunked attention with rope, then full attention without, and one shared expert."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def llama4(config: Config, name: str) -> dict[str, Any]:
    config.ignore("router_aux_loss_coef", "router_jitter_noise", "output_router_logits")
    layers = layer_count(config)
    norm = rms_norm(config)
    mixers = _mixers(config, norm["eps"], layers)
    experts, plain = _experts(config), dense(config, gated=True, width_key="intermediate_size_mlp")
    step = max(config.default("interleave_moe_layer_step", int, 1), 1)
    with_experts = config.raw("moe_layers")
    if with_experts is None:
        with_experts = list(range(step - 1, layers, step))
    if not isinstance(with_experts, list) or any(type(layer) is not int for layer in with_experts):
        config.refuse("moe_layers", "must be a list of layers")
        with_experts = []
    blocks = [
        {"mixer": mixer, "feed_forward": experts if layer in with_experts else plain, "norm": norm}
        for layer, mixer in enumerate(mixers)
    ]
    return model(config, name, blocks, norm, tied=False)


def _mixers(config: Config, eps: float, layers: int) -> list[dict[str, Any]]:
    mixer = attention(config, head_dim=128)
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    turning = mixer | {"chunk": config.nullable("attention_chunk_size", int, 8192)}
    turning["rope"] = rope(config, default_theta=500_000.0, head_dim=mixer["head_dim"]) | {"pairs": "adjacent"}
    if config.default("use_qk_norm", bool, True):
        turning |= {"qk_norm": {"kind": "rms", "eps": eps, "weight": False}, "qk_norm_after_rope": True}
    scale, interval = config.default("attn_scale", float, 0.1), config.default("floor_scale", int, 8192)
    tuned = config.raw("attn_temperature_tuning")  # a published config has a number here
    still = mixer | ({"temperature": {"scale": scale, "interval": interval}} if tuned is None or tuned else {})
    every = max(config.default("no_rope_layer_interval", int, 4), 1)
    turns = config.raw("no_rope_layers") or [int((layer + 1) % every != 0) for layer in range(layers)]
    if not isinstance(turns, list) or len(turns) != layers or any(turn not in (0, 1) for turn in turns):
        config.refuse("no_rope_layers", f"must be {layers} entries, 1 for layers with rope and 0 for those without")
        turns = [1] * layers
    types = ["chunked_attention" if turn and turning["chunk"] is not None else "full_attention" for turn in turns]
    config.must_be("layer_types", [types], "disagrees with no_rope_layers and attention_chunk_size")
    return [turning if turn else still for turn in turns]


def _experts(config: Config) -> dict[str, Any]:
    """A token's score multiplies the expert's input."""
    expert = dense(config, gated=True)
    return {
        "kind": "moe",
        "experts": config.required("num_local_experts", int),
        "top_k": config.required("num_experts_per_tok", int),
        "router": {"score": "sigmoid", "renormalise": False},
        "width": expert["width"],
        "activation": expert["activation"],
        "weigh_input": True,
        "shared": expert,
    }
