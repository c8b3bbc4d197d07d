"""Qwen 3 with experts: in every layer, in every n-th, or in all but some."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope


def qwen3_moe(config: Config, name: str) -> dict[str, Any]:
    """q and k are normalised per head. With `use_sliding_window` every layer has the window (modeling_qwen3_moe.py)."""
    config.ignore("output_router_logits", "router_aux_loss_coef", "max_window_layers")
    mixer = attention(config)
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    norm = rms_norm(config)
    mixer["qk_norm"] = norm
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    window = config.optional("sliding_window", int)
    mixer["window"] = window if config.default("use_sliding_window", bool, False) else None
    feed_forwards = experts_by_layer(config, routed_experts(config, renormalise=False))
    blocks = [{"mixer": mixer, "feed_forward": feed_forward, "norm": norm} for feed_forward in feed_forwards]
    return model(config, name, blocks, norm, tied=False)


def routed_experts(config: Config, *, renormalise: bool) -> dict[str, Any]:
    """A softmax over all experts; `renormalise` is the family's default for `norm_topk_prob`."""
    expert = dense(config, gated=True, width_key="moe_intermediate_size")
    return {
        "kind": "moe",
        "experts": _experts(config),
        "top_k": config.required("num_experts_per_tok", int),
        "router": {"score": "softmax", "renormalise": config.default("norm_topk_prob", bool, renormalise)},
        "width": expert["width"],
        "activation": expert["activation"],
    }


def _experts(config: Config) -> int:
    """`num_experts`, which transformers 5 writes as `num_local_experts`."""
    renamed = config.optional("num_local_experts", int)
    if renamed is None:
        return config.required("num_experts", int)
    if config.default("num_experts", int, renamed) != renamed:
        config.refuse("num_experts", f"is not num_local_experts, {renamed}; both are the number of experts")
    return renamed


def experts_by_layer(config: Config, experts: dict[str, Any]) -> list[dict[str, Any]]:
    """Feed-forwards of all layers: `experts`, but in those of `mlp_only_layers` and between `decoder_sparse_step`s."""
    layers, step = layer_count(config), config.default("decoder_sparse_step", int, 1)
    if step < 1:
        config.refuse("decoder_sparse_step", f"every {step}th layer; at least 1")
        step = 1
    dense_layers = config.raw("mlp_only_layers") or []
    if not isinstance(dense_layers, list) or not all(type(layer) is int for layer in dense_layers):
        config.refuse("mlp_only_layers", "must be a list of layer numbers")
        dense_layers = []
    with_experts = [(layer + 1) % step == 0 and layer not in dense_layers for layer in range(layers)]
    if all(with_experts):
        config.ignore("intermediate_size")
        return [experts] * layers
    plain = dense(config, gated=True)
    return [experts if chosen else plain for chosen in with_experts]
