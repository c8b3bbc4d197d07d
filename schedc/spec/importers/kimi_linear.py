"""Kimi-Linear and the text model of Kimi K3: Kimi Delta Attention, and latent attention without rope in between.

Two forms of config: Moonshot's own, with `linear_attn_config`, and that of transformers, with `layer_types`.
"""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import dense, layer_count, model, rms_norm
from schedc.spec.importers.latent import latent_attention
from schedc.spec.importers.routed import after_the_first, by_kind, leave_out_prediction_layers

_DIVISOR_EPSILON = 1e-20  # modeling_kimi.py, KimiMoEGate
_LENGTHS = ("max_position_embeddings", "model_max_length")
_SITU = {"beta": "activation_situ_beta", "linear_beta": "activation_situ_linear_beta"}
_FULL, _LINEAR = "full_attention", "linear_attention"


def kimi_linear(config: Config, name: str) -> dict[str, Any]:
    # a width that no tensor has; no layer turns anything
    config.ignore("head_dim", "rope_theta", "rope_scaling", "output_router_logits")
    config.must_be("mla_use_nope", [True], "latent attention with rope is not known for this family")
    config.must_be("attention_bias", [False], "biases of attention are not known for this family")
    leave_out_prediction_layers(config, "num_nextn_predict_layers")
    own, norm = config.part("linear_attn_config"), rms_norm(config)
    kinds = _layer_kinds(config) if own is None else _numbered_kinds(config, own)
    delta = _delta_attention(config, norm) if own is None else _delta_attention_of(config, own, norm)
    latent = latent_attention(config) | {"output_gate": config.default("mla_use_output_gate", bool, False)}
    mixers = {_FULL: latent, _LINEAR: delta}
    plain, experts = _feed_forward(config, "intermediate_size"), _experts(config, norm)
    feed_forwards = by_kind(config, plain, experts)
    if feed_forwards is None or config.data.get("first_k_dense_replace") is not None:
        counted = after_the_first(config, plain, experts)
        if feed_forwards not in (None, counted):
            config.refuse("mlp_layer_types", "disagrees with first_k_dense_replace")
        feed_forwards = counted
    config.must_be("moe_layer_freq", [1], "experts in every layer after the dense ones are known")
    blocks = [
        {"mixer": mixers[kind], "feed_forward": feed_forward, "norm": norm}
        for kind, feed_forward in zip(kinds, feed_forwards, strict=True)
    ]
    lengths = [key for key in _LENGTHS if config.data.get(key) is not None]
    spec = model(config, name, blocks, norm, tied=False, positions_key=(lengths or _LENGTHS)[0])
    block = config.optional("attn_res_block_size", int)
    if block is not None:
        spec["residual"] = {"kind": "block_attention", "block": block, "eps": norm["eps"]}
    return spec


def _delta_attention(config: Config, norm: dict[str, Any]) -> dict[str, Any]:
    """As transformers writes it, whose class has neither another decay nor another gate."""
    heads, width = config.required("linear_num_heads", int), config.required("linear_head_dim", int)
    conv = config.required("linear_conv_kernel_dim", int)
    return _kda(heads, width, conv, norm) | {"decay": {"kind": "softplus"}, "gate_rank": width}


def _delta_attention_of(config: Config, own: Config, norm: dict[str, Any]) -> dict[str, Any]:
    """As `linear_attn_config` has it, beside which transformers writes its own keys again."""
    heads, width = own.required("num_heads", int), own.required("head_dim", int)
    conv = own.required("short_conv_kernel_size", int)
    for key, value in (("linear_num_heads", heads), ("linear_head_dim", width), ("linear_conv_kernel_dim", conv)):
        config.must_be(key, [value], "disagrees with linear_attn_config")
    kda = _kda(heads, width, conv, norm)
    kda["gate_rank"] = None if own.default("use_full_rank_gate", bool, False) else width
    bound = own.optional("gate_lower_bound", float)
    if bound is not None and bound >= 0:
        own.refuse("gate_lower_bound", f"{bound:g}: logarithms of decays are below 0, and so is their bound")
        bound = None
    return kda | {"decay": {"kind": "softplus"} if bound is None else {"kind": "scaled_sigmoid", "bound": -bound}}


def _kda(heads: int, width: int, conv: int, norm: dict[str, Any]) -> dict[str, Any]:
    """Decays go through as many numbers as a head has."""
    widths = {"key_dim": width, "value_dim": width, "decay_rank": width}
    return {"kind": "kda", "heads": heads, **widths, "conv": conv, "output_norm": norm}


def _layer_kinds(config: Config) -> list[str]:
    """Of each layer, as `layer_types` has them."""
    layers, kinds = layer_count(config), config.raw("layer_types")
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in (_FULL, _LINEAR) for kind in kinds):
        config.refuse("layer_types", f"must be {layers} entries of {_LINEAR} or {_FULL}")
        return [_FULL] * layers
    return kinds


def _numbered_kinds(config: Config, own: Config) -> list[str]:
    """Of each layer. The numbers in `linear_attn_config` begin at 1, in other checkpoints at 0: their union says."""
    layers = layer_count(config)
    numbers = {key: own.raw(key) for key in ("full_attn_layers", "kda_layers")}
    for key, given in numbers.items():
        if not isinstance(given, list) or not all(type(number) is int for number in given):
            own.refuse(key, "must be a list of layer numbers")
            return [_FULL] * layers
    full, linear = numbers.values()
    first = min([*full, *linear], default=0)
    if first not in (0, 1) or sorted([*full, *linear]) != list(range(first, first + layers)):
        own.refuse("full_attn_layers", f"with kda_layers they must be all of {layers} layers, counted from 1 or from 0")
        return [_FULL] * layers
    kinds = [_FULL if layer + first in full else _LINEAR for layer in range(layers)]
    config.must_be("layer_types", [kinds], "disagrees with linear_attn_config")
    return kinds


def _feed_forward(config: Config, width_key: str) -> dict[str, Any]:
    if config.data.get("hidden_act") != "situ":
        return dense(config, gated=True, width_key=width_key)
    config.ignore("hidden_act")
    bounds = {name: config.required(key, float) for name, key in _SITU.items()}
    width = config.required(width_key, int)
    return {"kind": "dense", "width": width, "gated": True, "activation": "situ", **bounds}


def _experts(config: Config, norm: dict[str, Any]) -> dict[str, Any]:
    """Sigmoid, with a bias that chooses; in a latent space if the experts' own width is given."""
    config.must_be("moe_router_activation_func", ["sigmoid"], "only the sigmoid is known for this family")
    config.must_be("topk_method", ["noaux_tc"], "only noaux_tc is known for this family")
    config.must_be("use_grouped_topk", [True], "only a choice by groups is known for this family")
    renormalise = config.default("moe_renormalize", bool, True)
    expert = _feed_forward(config, "moe_intermediate_size")
    own = {key: value for key, value in expert.items() if key in ("width", "activation", *_SITU)}
    shared = config.default("num_shared_experts", int, 0)
    width = config.optional("routed_expert_hidden_size", int)
    normed = config.default("latent_moe_use_norm", bool, False)
    return {
        "kind": "moe",
        "experts": config.required("num_experts", int),
        "top_k": config.required("num_experts_per_token", int),
        "router": {
            "score": "sigmoid",
            "selection_bias": True,
            "groups": config.default("num_expert_group", int, 1),
            "groups_kept": config.default("topk_group", int, 1),
            "group_score": "top2_sum",
            "renormalise": renormalise,
            "epsilon": _DIVISOR_EPSILON if renormalise else 0.0,
            "scale": config.required("routed_scaling_factor", float),
        },
        **own,
        "latent": None if width is None else {"width": width, "norm_out": norm if normed else None},
        "shared": expert | {"width": shared * expert["width"]} if shared else None,
    }
