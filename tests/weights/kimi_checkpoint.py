"""A checkpoint as Kimi K3's: its names, dtypes and shapes (semantics of the published one), at small sizes.

Written by hand from the published tensors, not from the table that reads it.
"""

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from schedc.spec.model import ModelSpec
from schedc.weights.source import WeightSource

RMS = {"kind": "rms", "eps": 1e-5}
SITU = {"activation": "situ", "beta": 4.0, "linear_beta": 25.0}
LONGER = 5
"""Numbers that A_log has behind those of its heads."""

LAYER = {
    "attn.q": "self_attn.q_proj.weight",
    "attn.k": "self_attn.k_proj.weight",
    "attn.v": "self_attn.v_proj.weight",
    "attn.o": "self_attn.o_proj.weight",
    "attn.gate": "self_attn.g_proj.weight",
    "attn.q_conv": "self_attn.q_conv1d.weight",
    "attn.k_conv": "self_attn.k_conv1d.weight",
    "attn.v_conv": "self_attn.v_conv1d.weight",
    "attn.decay_a": "self_attn.f_a_proj.weight",
    "attn.decay_b": "self_attn.f_b_proj.weight",
    "attn.decay_bias": "self_attn.dt_bias",
    "attn.decay_scale": "self_attn.A_log",
    "attn.beta": "self_attn.b_proj.weight",
    "attn.output_norm": "self_attn.o_norm.weight",
    "attn.q_a": "self_attn.q_a_proj.weight",
    "attn.q_a_norm": "self_attn.q_a_layernorm.weight",
    "attn.q_b": "self_attn.q_b_proj.weight",
    "attn.kv_a": "self_attn.kv_a_proj_with_mqa.weight",
    "attn.kv_a_norm": "self_attn.kv_a_layernorm.weight",
    "attn.kv_b": "self_attn.kv_b_proj.weight",
    "mlp.gate": "mlp.gate_proj.weight",
    "mlp.up": "mlp.up_proj.weight",
    "mlp.down": "mlp.down_proj.weight",
    "mlp.router": "block_sparse_moe.gate.weight",
    "mlp.selection_bias": "block_sparse_moe.gate.e_score_correction_bias",
    "mlp.latent_in": "block_sparse_moe.routed_expert_down_proj.weight",
    "mlp.latent_norm_out_weight": "block_sparse_moe.routed_expert_norm.weight",
    "mlp.latent_out": "block_sparse_moe.routed_expert_up_proj.weight",
    "mlp.shared.gate": "block_sparse_moe.shared_experts.gate_proj.weight",
    "mlp.shared.up": "block_sparse_moe.shared_experts.up_proj.weight",
    "mlp.shared.down": "block_sparse_moe.shared_experts.down_proj.weight",
    "pre_mixer_norm.weight": "input_layernorm.weight",
    "pre_feed_forward_norm.weight": "post_attention_layernorm.weight",
    "mixer_residual.norm": "self_attention_res_norm.weight",
    "mixer_residual.query": "self_attention_res_proj.weight",
    "feed_forward_residual.norm": "mlp_res_norm.weight",
    "feed_forward_residual.query": "mlp_res_proj.weight",
}
MODEL = {
    "embed": "model.embed_tokens.weight",
    "head": "lm_head.weight",
    "final_norm.weight": "model.norm.weight",
    "final_residual.norm": "model.output_attn_res_norm.weight",
    "final_residual.query": "model.output_attn_res_proj.weight",
}
EXPERT = {"gate": "w1", "up": "w3", "down": "w2"}
FLOAT32 = ("_conv", "decay_bias", "decay_scale", "output_norm", "selection_bias")
"""Endings of the weights that the checkpoint has in float32; the others are bfloat16."""


def kimi_spec(**quantization: str) -> ModelSpec:
    """A dense layer of Kimi Delta Attention, then one and one of latent attention, both with experts in mxfp4."""
    kda = {
        "kind": "kda", "heads": 3, "key_dim": 32, "value_dim": 32, "conv": 4, "decay_rank": 32, "output_norm": RMS,
        "decay": {"kind": "scaled_sigmoid", "bound": 5.0},
    }  # fmt: skip
    mla = {
        "kind": "mla", "heads": 3, "q_rank": 48, "kv_rank": 64, "nope_dim": 32, "rope_dim": 16, "value_dim": 32,
        "q_norm": RMS, "kv_norm": RMS, "output_gate": True,
    }  # fmt: skip
    dense = {"kind": "dense", "width": 160, "gated": True} | SITU
    experts = SITU | {
        "kind": "moe", "experts": 6, "top_k": 2, "width": 96, "latent": {"width": 64, "norm_out": RMS},
        "router": {"score": "sigmoid", "selection_bias": True, "renormalise": True, "epsilon": 1e-20},
        "shared": dense,
    }  # fmt: skip
    layers: list[tuple[dict[str, Any], dict[str, Any]]] = [(kda, dense), (kda, experts), (mla, experts)]
    blocks = [{"mixer": mixer, "feed_forward": feed_forward, "norm": RMS} for mixer, feed_forward in layers]
    return ModelSpec.model_validate(
        {
            "name": "small-kimi",
            "hidden": 96,
            "vocab": 130,
            "max_position": 64,
            "embedding": {"tied": False},
            "layers": [{"repeat": 1, "pattern": [block]} for block in blocks],
            "final_norm": RMS,
            "residual": {"kind": "block_attention", "block": 2, "eps": 1e-5},
            "quantization": {"experts": "mxfp4"} | quantization,
        }
    )


def kimi_checkpoint(source: WeightSource) -> dict[str, np.ndarray]:
    """The tensors of a source of `kimi_spec`, and one of the vision tower."""
    tensors = {"vision_tower.patch_embed.proj.weight": np.ones((2, 2), np.float32)}
    for name in source.names():
        _, _, own = name.split(".", 2) if name.startswith("layers.") else ("", "", name)
        if own.startswith("mlp.experts."):
            tensors |= _expert(source, name)
            continue
        stored = f"model.layers.{name.split('.')[1]}.{LAYER[own]}" if own != name else MODEL[name]
        tensors[f"language_model.{stored}"] = _stored(own, source.load(name))
    return tensors


def _stored(own: str, values: np.ndarray) -> np.ndarray:
    if own.endswith("_conv"):
        values = values[:, None, :]
    elif own.endswith("_residual.query"):
        values = values[None, :]
    elif own == "attn.decay_scale":
        values = np.append(values, np.full(LONGER, 9.0, np.float32))
    return values if own.endswith(FLOAT32) else values.astype(bfloat16)


def _expert(source: WeightSource, name: str) -> dict[str, np.ndarray]:
    """Two codes of e2m1 a byte, that of the even column in the low half, and a power of two a group of 32."""
    _, layer, _, _, expert, own = name.split(".")
    numbers = source.numbers(name, (0, source.shape(name)[0]))
    codes = numbers["codes"].astype(np.uint8)
    stem = f"language_model.model.layers.{layer}.block_sparse_moe.experts.{expert}.{EXPERT[own]}"
    return {
        f"{stem}.weight_packed": codes[:, ::2] | codes[:, 1::2] << 4,
        f"{stem}.weight_scale": numbers["scale"].astype(np.uint8),
    }
