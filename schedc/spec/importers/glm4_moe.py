"""GLM-4.5: grouped-query attention with biases of q, k and v, half of each head turned; experts as in DeepSeek-V3."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, model, rms_norm
from schedc.spec.importers.rope import rope
from schedc.spec.importers.routed import after_the_first, leave_out_prediction_layers, routed_experts

_TURNING_PART = 0.5


def glm4_moe(config: Config, name: str) -> dict[str, Any]:
    leave_out_prediction_layers(config, "num_nextn_predict_layers")
    norm = rms_norm(config)
    mixer = attention(config)
    mixer["rope"] = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"], default_part=_TURNING_PART)
    mixer["bias"] = dict.fromkeys("qkv", config.default("attention_bias", bool, False))
    if config.default("use_qk_norm", bool, False):
        mixer["qk_norm"] = norm
    feed_forwards = after_the_first(config, dense(config, gated=True), routed_experts(config))
    blocks = [{"mixer": mixer, "feed_forward": feed_forward, "norm": norm} for feed_forward in feed_forwards]
    return model(config, name, blocks, norm, tied=False)
