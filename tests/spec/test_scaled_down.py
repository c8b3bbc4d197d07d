"""Scaled-down models have every mechanism of those they stand for: they are their configs with other sizes."""

import json
from pathlib import Path

from schedc.spec.importers.import_config import import_config
from schedc.spec.load import load_spec

CONFIGS = Path(__file__).parents[1] / "data" / "configs"

KIMI_K3_SIZES = {
    "hidden_size": 256,
    "vocab_size": 1024,
    "eos_token_id": 5,
    "num_hidden_layers": 13,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "q_lora_rank": 96,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "routed_expert_hidden_size": 128,
    "num_experts": 64,
    "num_experts_per_token": 6,
    "attn_res_block_size": 6,
}
DELTA_SIZES = {
    "num_heads": 12,
    "head_dim": 32,
    "kda_layers": [1, 2, 4, 5, 7, 8, 10, 11],
    "full_attn_layers": [3, 6, 9, 12, 13],
}


def test_kimi_k3_mini_is_kimi_k3_with_other_sizes() -> None:
    data = json.loads((CONFIGS / "Kimi-K3.json").read_text())
    data["eos_token_id"] = KIMI_K3_SIZES["eos_token_id"]
    text = data["text_config"]
    assert KIMI_K3_SIZES.keys() <= text.keys() and DELTA_SIZES.keys() <= text["linear_attn_config"].keys()
    text |= KIMI_K3_SIZES | {"linear_attn_config": text["linear_attn_config"] | DELTA_SIZES}

    mini, imported = load_spec("kimi-k3-mini"), import_config(data, "kimi-k3-mini")

    assert [at.block for at in mini.iter_layers()] == [at.block for at in imported.iter_layers()]
    assert mini.model_copy(update={"layers": ()}) == imported.model_copy(update={"layers": ()})


def test_kimi_k3_mini_repeats_a_period_between_irregular_ends() -> None:
    mini, full = load_spec("kimi-k3-mini"), load_spec("kimi-k3")
    assert mini.num_layers <= 16
    assert [len(run.pattern) for run in mini.layers] == [1, 3, 1, 1]
    assert [len(run.pattern) for run in full.layers] == [1, 4, 1, 1]
    assert mini.layers[1].repeat >= 3
    assert [[block.mixer.kind for block in run.pattern] for run in mini.layers[2:]] == [["kda"], ["mla"]]
    assert mini.residual.block > len(mini.layers[1].pattern)
