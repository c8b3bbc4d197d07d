"""Weights of a scaled-down Kimi K3 as its checkpoint has them: names, shapes, packing."""

from collections.abc import Iterator

import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.source import WeightSource

A_LOG_PADDING = 4
"""Entries of A_log behind those of the heads, which nothing may read."""

OUTER = {
    "embed": "model.embed_tokens.weight",
    "head": "lm_head.weight",
    "final_norm.weight": "model.norm.weight",
    "final_residual.norm": "model.output_attn_res_norm.weight",
    "final_residual.query": "model.output_attn_res_proj.weight",
}
LAYER = {
    "pre_mixer_norm.weight": "input_layernorm.weight",
    "pre_feed_forward_norm.weight": "post_attention_layernorm.weight",
    "mixer_residual.norm": "self_attention_res_norm.weight",
    "mixer_residual.query": "self_attention_res_proj.weight",
    "feed_forward_residual.norm": "mlp_res_norm.weight",
    "feed_forward_residual.query": "mlp_res_proj.weight",
    "attn.q": "self_attn.q_proj.weight",
    "attn.k": "self_attn.k_proj.weight",
    "attn.v": "self_attn.v_proj.weight",
    "attn.q_conv": "self_attn.q_conv1d.weight",
    "attn.k_conv": "self_attn.k_conv1d.weight",
    "attn.v_conv": "self_attn.v_conv1d.weight",
    "attn.decay_a": "self_attn.f_a_proj.weight",
    "attn.decay_b": "self_attn.f_b_proj.weight",
    "attn.decay_bias": "self_attn.dt_bias",
    "attn.decay_scale": "self_attn.A_log",
    "attn.beta": "self_attn.b_proj.weight",
    "attn.gate": "self_attn.g_proj.weight",
    "attn.output_norm": "self_attn.o_norm.weight",
    "attn.o": "self_attn.o_proj.weight",
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
}
EXPERT = {"gate": "w1", "up": "w3", "down": "w2"}


def checkpoint(spec: ModelSpec, source: WeightSource) -> dict[str, np.ndarray]:
    """Every tensor, by its name without the wrapper's prefix."""
    return {tensor: values for name in source.names() for tensor, values in _tensors(name, source)}


def _tensors(name: str, source: WeightSource) -> Iterator[tuple[str, np.ndarray]]:
    if name in OUTER:
        values = source.load(name)
        yield OUTER[name], values[None] if name.endswith("query") else values
        return
    _, layer, own = name.split(".", 2)
    at = f"model.layers.{layer}"
    if ".experts." in own:
        _, _, expert, side = own.split(".")
        numbers = source.numbers(name, (0, source.shape(name)[0]))
        tensor = f"{at}.block_sparse_moe.experts.{expert}.{EXPERT[side]}"
        yield f"{tensor}.weight_packed", numbers["codes"][:, 0::2] | numbers["codes"][:, 1::2] << 4
        yield f"{tensor}.weight_scale", numbers["scale"]
        return
    values = source.load(name)
    if own.endswith("query"):
        values = values[None]
    if own.endswith("_conv"):
        values = values[:, None]
    if own == "attn.decay_scale":
        values = np.concatenate([values, np.full(A_LOG_PADDING, np.nan, np.float32)])
    yield f"{at}.{LAYER[own]}", values
