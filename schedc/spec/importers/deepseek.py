"""DeepSeek-V2 and V3 and Kimi-K2: latent attention, then experts with shared ones behind a few dense layers."""

from math import log
from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import dense, model, rms_norm
from schedc.spec.importers.latent import latent_attention
from schedc.spec.importers.rope import rope
from schedc.spec.importers.routed import after_the_first, leave_out_prediction_layers, routed_experts, with_shared


def deepseek_v3(config: Config, name: str) -> dict[str, Any]:
    # split over devices and the loss of training
    config.ignore("ep_size", "aux_loss_alpha", "seq_aux")
    leave_out_prediction_layers(config, "num_nextn_predict_layers")
    pairs = "adjacent" if config.default("rope_interleave", bool, True) else "half"
    return _deepseek(config, name, routed_experts(config), pairs)


def deepseek_v2(config: Config, name: str) -> dict[str, Any]:
    """Softmax over all experts; the weights of the chosen ones are scaled, not renormalised."""
    config.ignore("ep_size", "aux_loss_alpha", "seq_aux")
    config.must_be("scoring_func", ["softmax"], "only the softmax is known for this family")
    config.must_be("norm_topk_prob", [False], "implementations differ in what this asks for")
    method = config.default("topk_method", str, "greedy")
    if method not in ("greedy", "group_limited_greedy"):
        config.refuse("topk_method", f"{method!r}: only greedy and group_limited_greedy are known")
    grouped = method == "group_limited_greedy"
    groups, kept = config.default("n_group", int, 1), config.default("topk_group", int, 1)
    router = {
        "score": "softmax",
        "groups": groups if grouped else 1,
        "groups_kept": kept if grouped else 1,
        "group_score": "max",
        "renormalise": False,
        "scale": config.default("routed_scaling_factor", float, 1.0),
    }
    return _deepseek(config, name, with_shared(config, router), "adjacent")


def _deepseek(config: Config, name: str, experts: dict[str, Any], pairs: str) -> dict[str, Any]:
    mixer = _latent_attention(config, pairs)
    norm = rms_norm(config)
    config.must_be("mlp_bias", [False], "biases of the feed-forward are not known for this family")
    feed_forwards = after_the_first(config, dense(config, gated=True), experts)
    blocks = [{"mixer": mixer, "feed_forward": feed_forward, "norm": norm} for feed_forward in feed_forwards]
    return model(config, name, blocks, norm, tied=False)


def _latent_attention(config: Config, pairs: str) -> dict[str, Any]:
    config.must_be("attention_bias", [False], "biases of latent attention are not known")
    mixer = latent_attention(config)
    nope_dim, rope_dim = mixer["nope_dim"], mixer["rope_dim"]
    config.must_be("head_dim", [rope_dim], f"disagrees with qk_rope_head_dim {rope_dim}")
    turning = rope(config, default_theta=10_000.0, head_dim=rope_dim) | {"pairs": pairs}
    mixer |= {"rope": turning}
    spread = _score_factor(turning.get("scaling") or {})
    if spread == 1.0 or nope_dim + rope_dim <= 0:
        return mixer
    return mixer | {"scale": (nope_dim + rope_dim) ** -0.5 * spread}


def _score_factor(scaling: dict[str, Any]) -> float:
    """YaRN's second factor, on the scores: g(mscale_all_dim)², where g(s) = 0.1·s·ln(factor) + 1."""
    factor, mscale = scaling.get("factor"), scaling.get("mscale_all_dim")
    if not (isinstance(factor, float) and isinstance(mscale, float) and factor > 0 and mscale > 0):
        return 1.0
    return (0.1 * mscale * log(factor) + 1.0) ** 2 if scaling["kind"] == "yarn" else 1.0
