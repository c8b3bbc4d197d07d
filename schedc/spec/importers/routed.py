"""Experts chosen by a sigmoid and a bias of their own, with shared ones: DeepSeek-V3 and what follows it."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import dense, layer_count

_DIVISOR_EPSILON = 1e-20  # transformers, DeepseekV3TopkRouter


def routed_experts(config: Config) -> dict[str, Any]:
    """The feed-forward of a layer with experts: groups of them, then the best of the groups kept."""
    config.must_be("scoring_func", ["sigmoid"], "only the sigmoid is known for this family")
    config.must_be("topk_method", ["noaux_tc"], "only noaux_tc is known for this family")
    renormalise = config.default("norm_topk_prob", bool, True)
    return with_shared(
        config,
        {
            "score": "sigmoid",
            "selection_bias": True,
            "groups": config.default("n_group", int, 1),
            "groups_kept": config.default("topk_group", int, 1),
            "group_score": "top2_sum",
            "renormalise": renormalise,
            "epsilon": _DIVISOR_EPSILON if renormalise else 0.0,
            "scale": config.required("routed_scaling_factor", float),
        },
    )


def with_shared(config: Config, router: dict[str, Any]) -> dict[str, Any]:
    """Experts of `moe_intermediate_size`, and as many shared ones as `n_shared_experts`, in one feed-forward."""
    expert = dense(config, gated=True, width_key="moe_intermediate_size")
    shared = config.default("n_shared_experts", int, 0)
    return {
        "kind": "moe",
        "experts": config.required("n_routed_experts", int),
        "top_k": config.required("num_experts_per_tok", int),
        "router": router,
        "width": expert["width"],
        "activation": expert["activation"],
        "shared": expert | {"width": shared * expert["width"]} if shared else None,
    }


def after_the_first(config: Config, first: dict[str, Any], later: dict[str, Any]) -> list[dict[str, Any]]:
    """Feed-forwards of all layers: `first_k_dense_replace` dense ones, then experts."""
    config.must_be("moe_layer_freq", [1], "experts in every layer after the dense ones are known")
    layers, dense_layers = layer_count(config), config.default("first_k_dense_replace", int, 0)
    return [first if layer < dense_layers else later for layer in range(layers)]


def by_kind(config: Config, plain: dict[str, Any], experts: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Feed-forwards of all layers as `mlp_layer_types` names them, dense or sparse; None without that key."""
    kinds, layers = config.raw("mlp_layer_types"), layer_count(config)
    if kinds is None:
        return None
    if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in ("sparse", "dense") for kind in kinds):
        config.refuse("mlp_layer_types", f"must be {layers} entries of sparse or dense")
        kinds = ["sparse"] * layers
    return [experts if kind == "sparse" else plain for kind in kinds]


def leave_out_prediction_layers(config: Config, *keys: str) -> None:
    """Layers that guess further tokens take no part in the step that decodes one token."""
    for key in keys:
        if config.default(key, int, 0):
            config.leave_out(key, "layers that predict further tokens take no part in decoding one token")
