"""EXAONE 4: norms after the mixer and the feed-forward; with a window, the full layers have no rope."""

from typing import Any

from schedc.spec.importers.config import Config
from schedc.spec.importers.decoder import attention, dense, layer_count, layer_windows, model, rms_norm
from schedc.spec.importers.rope import rope


def exaone4(config: Config, name: str) -> dict[str, Any]:
    norm = rms_norm(config)
    mixer = attention(config) | {"qk_norm": norm}
    turning = rope(config, default_theta=10_000.0, head_dim=mixer["head_dim"])
    window = config.nullable("sliding_window", int, 4096)
    layers = layer_count(config)
    pattern = config.raw("sliding_window_pattern")
    default = ["full_attention"] * layers
    if window and config.data.get("layer_types") is None:
        config.refuse("layer_types", f"missing; sliding_window_pattern {pattern!r} alone is not read")
    feed_forward = dense(config, gated=True)
    blocks = []
    for layer_window in layer_windows(config, default, window):
        own = {"window": layer_window, "rope": turning if layer_window or not window else None}
        blocks.append({"mixer": mixer | own, "feed_forward": feed_forward, "norm": norm, "placement": "post"})
    return model(config, name, blocks, norm, tied=False)
