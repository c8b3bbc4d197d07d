"""Qwen3-Next, Qwen3.5 and Qwen3.6: a gated delta rule in most layers, gated attention in every fourth."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.qwen3_moe import experts_by_layer, routed_experts
from schedc.spec.importers.rope import rope
from schedc.spec.importers.routed import leave_out_prediction_layers

_FULL, _LINEAR = "full_attention", "linear_attention"
_TURNING_PART = 0.25
_POSITIONS_OF_IMAGES = ("mrope_interleaved", "mrope_section")


def qwen3_next(config: Config, name: str) -> dict[str, Any]:
    """Experts in every layer, in every n-th, or in all but some."""
    return _hybrid(config, name, experts_by_layer(config, _experts(config)))


def qwen3_5(config: Config, name: str) -> dict[str, Any]:
    """Dense."""
    config.must_be("mlp_only_layers", [[]], "a dense model has no other layers")
    return _hybrid(config, name, [dense(config, gated=True)] * layer_count(config))


def qwen3_5_moe(config: Config, name: str) -> dict[str, Any]:
    """Experts in every layer, their weights renormalised, which no key of the config says."""
    config.must_be("mlp_only_layers", [[]], "layers without experts are not known in this family")
    config.must_be("norm_topk_prob", [True], "weights that are not renormalised are not known in this family")
    return _hybrid(config, name, [_experts(config)] * layer_count(config))


def _hybrid(config: Config, name: str, feed_forwards: list[dict[str, Any]]) -> dict[str, Any]:
    """Norms are stored as offsets from one, but that of the delta rule's output."""
    leave_out_prediction_layers(config, "mtp_num_hidden_layers")
    config.ignore("mtp_use_dedicated_embeddings")
    norm = rms_norm(config, unit_offset=True)
    mixers = {_FULL: _attention(config, norm), _LINEAR: _gated_delta(config)}
    blocks = [
        {"mixer": mixers[kind], "feed_forward": feed_forward, "norm": norm}
        for kind, feed_forward in zip(_layer_kinds(config), feed_forwards, strict=True)
    ]
    return model(config, name, blocks, norm, tied=False)


def _attention(config: Config, norm: dict[str, Any]) -> dict[str, Any]:
    """q and k are normalised per head and the output is gated, which no key of the older configs says."""
    config.must_be("attn_output_gate", [True], "attention without a gate of its output is not known in this family")
    config.must_be("attention_bias", [False], "biases of gated attention are not known in this family")
    mixer = attention(config, head_dim=256) | {"qk_norm": norm, "output_gate": True}
    mixer["rope"] = rope(
        config,
        default_theta=10_000.0,
        head_dim=mixer["head_dim"],
        default_part=_TURNING_PART,
        of_images=_POSITIONS_OF_IMAGES,
    )
    return mixer


def _gated_delta(config: Config) -> dict[str, Any]:
    """`output_gate_type` is the activation of the gate behind the norm of this output, not of attention's."""
    config.must_be("mamba_ssm_dtype", ["float32"], "states are float32")
    config.must_be("output_gate_type", ["swish", "silu"], "only silu is known for this family")
    return {
        "kind": "gated_delta",
        "key_heads": config.required("linear_num_key_heads", int),
        "value_heads": config.required("linear_num_value_heads", int),
        "key_dim": config.required("linear_key_head_dim", int),
        "value_dim": config.required("linear_value_head_dim", int),
        "conv": config.required("linear_conv_kernel_dim", int),
        "output_norm": rms_norm(config),
    }


def _layer_kinds(config: Config) -> list[str]:
    """`layer_types`, or full attention in every n-th layer."""
    layers, every = layer_count(config), config.default("full_attention_interval", int, 4)
    kinds = config.raw("layer_types")
    if kinds is None:
        return [_LINEAR if (layer + 1) % max(every, 1) else _FULL for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in (_FULL, _LINEAR) for kind in kinds):
        config.refuse("layer_types", f"must be {layers} entries of {_LINEAR} or {_FULL}")
        return [_FULL] * layers
    return kinds


def _experts(config: Config) -> dict[str, Any]:
    """Beside the experts a shared one, times a sigmoid of its own."""
    config.ignore("router_aux_loss_coef", "output_router_logits")
    experts = routed_experts(config, renormalise=True)
    width = config.required("shared_expert_intermediate_size", int)
    shared = {"kind": "dense", "width": width, "gated": True, "activation": experts["activation"]}
    return experts | {"shared": shared, "shared_gate": True}
