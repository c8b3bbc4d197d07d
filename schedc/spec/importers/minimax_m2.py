"""MiniMax-M2: q and k normalised over all heads jointly, a part of each head turned, experts in every layer."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model, rms_norm
from schedc.spec.importers.rope import rope
from schedc.spec.importers.routed import leave_out_prediction_layers


def minimax_m2(config: Config, name: str) -> dict[str, Any]:
    leave_out_prediction_layers(config, "num_mtp_modules")
    # of the prediction layers; of training
    config.ignore("use_mtp", "mtp_transformer_layers", "router_jitter_noise", "router_aux_loss_coef")
    config.ignore("output_router_logits")
    config.must_be("use_qk_norm", [True], "without norms of q and k the family is not known")
    config.must_be("qk_norm_type", ["per_layer"], "only a norm over all heads of a layer is known")
    config.must_be("use_routing_bias", [True], "without the bias that chooses experts the family is not known")
    config.must_be("scoring_func", ["sigmoid"], "only the sigmoid is known for this family")
    config.must_be("shared_intermediate_size", [0], "shared experts are not known for this family")
    norm = rms_norm(config)
    mixer = attention(config) | {"qk_norm": norm, "qk_norm_over": "heads"}
    mixer["rope"] = rope(config, default_theta=5_000_000.0, head_dim=mixer["head_dim"])
    rotary_dim = config.optional("rotary_dim", int)
    if rotary_dim is not None and rotary_dim != mixer["head_dim"]:
        mixer["rope"]["rotary_dim"] = rotary_dim
    expert = dense(config, gated=True)
    experts = {
        "kind": "moe",
        "experts": config.required("num_local_experts", int),
        "top_k": config.required("num_experts_per_tok", int),
        "router": {"score": "sigmoid", "selection_bias": True, "renormalise": True},
        "width": expert["width"],
        "activation": expert["activation"],
    }
    block = {"mixer": mixer, "feed_forward": experts, "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=False)
