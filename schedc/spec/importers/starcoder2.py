"""StarCoder2: LayerNorm with bias, biases everywhere, a plain feed-forward, a tied head."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, model
from schedc.spec.importers.rope import rope


def starcoder2(config: Config, name: str) -> dict[str, Any]:
    # left over from GPT-BigCode; StarCoder2 reads hidden_act and norm_epsilon
    config.ignore("activation_function", "layer_norm_epsilon")
    config.must_be("mlp_type", ["default"], "only the default feed-forward is known")
    config.must_be("norm_type", ["layer_norm"], "only layer_norm is known")
    config.must_be("scale_attn_weights", [True], "attention without scaling is not known")
    bias = config.default("use_bias", bool, True)
    mixer = attention(config)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    mixer["bias"] = dict.fromkeys("qkvo", bias)
    mixer["window"] = config.optional("sliding_window", int)
    norm = {"kind": "layer", "eps": config.required("norm_epsilon", float), "bias": True}
    block = {"mixer": mixer, "feed_forward": dense(config, gated=False, bias=bias), "norm": norm}
    return model(config, name, [block] * layer_count(config), norm, tied=True)
