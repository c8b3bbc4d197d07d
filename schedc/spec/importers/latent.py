"""Latent attention as DeepSeek's configs name it, which the families that took it over do too."""

from typing import Any

from schedc.spec.importers.config import Config

_LATENT_NORM = {"kind": "rms", "eps": 1e-6}  # the class's default, whatever rms_norm_eps says


def latent_attention(config: Config) -> dict[str, Any]:
    """Heads, ranks, dimensions and the norms of latents."""
    heads = config.required("num_attention_heads", int)
    config.must_be("num_key_value_heads", [heads], f"latent attention has as many as heads, {heads}")
    nope_dim, rope_dim = config.required("qk_nope_head_dim", int), config.required("qk_rope_head_dim", int)
    config.must_be("qk_head_dim", [nope_dim + rope_dim], "disagrees with qk_nope_head_dim + qk_rope_head_dim")
    q_rank = config.optional("q_lora_rank", int)
    return {
        "kind": "mla",
        "heads": heads,
        "q_rank": q_rank,
        "kv_rank": config.required("kv_lora_rank", int),
        "nope_dim": nope_dim,
        "rope_dim": rope_dim,
        "value_dim": config.required("v_head_dim", int),
        "q_norm": None if q_rank is None else _LATENT_NORM,
        "kv_norm": _LATENT_NORM,
    }
