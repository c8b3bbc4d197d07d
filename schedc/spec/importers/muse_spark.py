"""Muse Spark's text model: a gated residual between sandwich norms, gated attention, experts in a latent space."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, layer_windows, model, rms_norm
from schedc.spec.importers.rope import rope
from schedc.spec.importers.routed import by_kind

_DIVISOR_EPSILON = 1e-15  # transformers, MuseSparkTopkRouter
_GATE_FLOOR = 1e-3  # transformers, MuseSparkResidualGate


def muse_spark(config: Config, name: str) -> dict[str, Any]:
    """Every fourth layer, counted back from the last, is full and not turned; the others have a window."""
    config.ignore("output_router_logits")
    layers = layer_count(config)
    norm = rms_norm(config, unit_offset=True)
    bare = {"kind": "rms", "eps": norm["eps"], "weight": False}
    post_eps = config.default("post_norm_eps", float, 1e-8)
    mixers = _mixers(config, bare, layers)
    multiplier = config.default("output_multiplier", float, 0.1767766952966369)
    feed_forwards = _feed_forwards(config, norm, post_eps, multiplier, layers)
    blocks = [
        {
            "mixer": mixer,
            "feed_forward": feed_forward,
            "norm": norm,
            "placement": "sandwich",
            "output_norm": bare | {"eps": post_eps},
            "feed_forward_output_norm": norm | {"eps": post_eps, "scale_first": True},
        }
        for mixer, feed_forward in zip(mixers, feed_forwards, strict=True)
    ]
    spec = model(config, name, blocks, {"kind": "rms", "eps": norm["eps"]}, tied=False)
    spec["embedding"]["norm"] = bare
    temperature = config.default("residual_gate_temperature", float, 0.3)
    spec["residual"] = {"kind": "gated", "temperature": temperature, "floor": _GATE_FLOOR}
    spec["head"] = {"multiplier": multiplier, "soft_cap": config.default("final_logit_softcapping", float, 20.0)}
    return spec


def _mixers(config: Config, bare: dict[str, Any], layers: int) -> list[dict[str, Any]]:
    mixer = attention(config) | {"qk_norm": bare, "output_norm": bare, "output_gate": True}
    mixer["bias"] = dict.fromkeys("qkvo", config.default("attention_bias", bool, False))
    mixer["scale"] = config.default("qk_scale_factor", float, 5.4730064863875) * max(mixer["head_dim"], 1) ** -0.5
    turning = rope(config, default_theta=500_000.0, head_dim=mixer["head_dim"])
    full = [(layers - 1 - layer) % 4 == 0 for layer in range(layers)]
    thetas = config.raw("layer_rope_theta")
    if thetas is None:
        thetas = [0 if last else turning["theta"] for last in full]
    if not isinstance(thetas, list) or len(thetas) != layers or any(t not in (0, turning["theta"]) for t in thetas):
        config.refuse("layer_rope_theta", f"must be {layers} entries of 0 or rope_theta {turning['theta']:g}")
        thetas = [0] * layers
    types = ["full_attention" if last else "sliding_attention" for last in full]
    windows = layer_windows(config, types, config.nullable("sliding_window", int, 2048))
    return [
        mixer | {"window": window, "rope": turning if theta else None}
        for window, theta in zip(windows, thetas, strict=True)
    ]


def _feed_forwards(
    config: Config, norm: dict[str, Any], post_eps: float, multiplier: float, layers: int
) -> list[dict[str, Any]]:
    expert = dense(config, gated=True, width_key="moe_intermediate_size")
    experts = {
        "kind": "moe",
        "experts": config.required("num_local_experts", int),
        "top_k": config.required("num_experts_per_tok", int),
        "router": {
            "score": "sigmoid",
            "selection_bias": True,
            "logit_multiplier": multiplier,
            "renormalise": True,
            "epsilon": _DIVISOR_EPSILON,
            "scale": config.default("routed_scaling_factor", float, 1.0),
        },
        "width": expert["width"],
        "activation": expert["activation"],
        "expert_norm": norm | {"eps": post_eps, "scale_first": True},
        "latent": {"width": config.required("moe_hidden_size", int), "norm_in": norm},
    }
    return by_kind(config, dense(config, gated=True), experts) or [experts] * layers
