"""Configs of families whose layers keep a state: Kimi-Linear, Kimi K3, Qwen3-Next, Qwen3.5, Qwen3.6."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from schedc.errors import ConfigError
from schedc.spec.importers.import_config import import_config, import_with_report
from schedc.spec.mixers.gated_delta import GatedDelta
from schedc.spec.mixers.gqa import Gqa
from schedc.spec.mixers.kda import Kda, ScaledSigmoidDecay, SoftplusDecay
from schedc.spec.mixers.mla import Mla
from schedc.spec.model import ModelSpec

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
LINEAR = "Kimi-Linear-48B-A3B-Instruct"


def config(name: str, **changes: Any) -> dict[str, Any]:
    """A published config, its text model with changes; `...` leaves a key out, `a__b` is the key b of the mapping a."""
    data = json.loads((CONFIGS / f"{name}.json").read_text())
    inner = data.get("text_config", data)
    for key, value in changes.items():
        *parts, last = key.split("__")
        place = inner
        for part in parts:
            place = place[part]
        place[last] = copy.deepcopy(value)
        if value is ...:
            del place[last]
    return data


def refusals(data: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        import_config(data)
    return list(caught.value.problems)


def kinds(spec: ModelSpec) -> list[str]:
    return [at.block.mixer.kind for at in spec.iter_layers()]


def layers_of(spec: ModelSpec, kind: str) -> list[int]:
    return [layer for layer, found in enumerate(kinds(spec)) if found == kind]


# ---- Kimi


def test_kimi_k3_has_24_layers_of_latent_attention_and_the_last_two_are_neighbours() -> None:
    spec = import_config(config("Kimi-K3"))
    assert layers_of(spec, "mla") == [*range(3, 92, 4), 92]
    assert len(layers_of(spec, "kda")) == 69
    assert [at.layer for at in spec.iter_layers() if at.block.feed_forward.kind == "dense"] == [0]
    assert [(run.repeat, len(run.pattern)) for run in spec.layers] == [(1, 1), (22, 4), (2, 1), (2, 1)]


def test_layers_may_be_counted_from_one_or_from_nought() -> None:
    own = config(LINEAR)["linear_attn_config"]
    from_nought = {key: [number - 1 for number in own[key]] for key in ("full_attn_layers", "kda_layers")}
    changed = config(LINEAR, linear_attn_config=own | from_nought)
    assert import_config(changed) == import_config(config(LINEAR))
    assert layers_of(import_config(changed), "mla") == [3, 7, 11, 15, 19, 23, 26]


def test_layers_that_are_not_all_named_once_are_refused() -> None:
    for wrong in ([4, 8, 12, 16, 20, 24], [4, 8, 12, 16, 20, 24, 26], [2, 4, 8, 12, 16, 20, 24, 27, 28]):
        (line,) = refusals(config(LINEAR, linear_attn_config__full_attn_layers=wrong))
        assert line == (
            "linear_attn_config.full_attn_layers: with kda_layers they must be all of 27 layers, counted from 1 or "
            "from 0"
        )


def test_of_kimi_k3_decays_are_a_scaled_sigmoid_and_gates_of_full_rank() -> None:
    (kda,) = {at.block.mixer for at in import_config(config("Kimi-K3")).iter_layers() if at.block.mixer.kind == "kda"}
    assert isinstance(kda, Kda)
    assert (kda.heads, kda.key_dim, kda.value_dim, kda.conv) == (96, 128, 128, 4)
    assert (kda.decay, kda.decay_rank) == (ScaledSigmoidDecay(kind="scaled_sigmoid", bound=5.0), 128)
    assert kda.gate_rank is None
    assert kda.output_norm.eps == 1e-5


def test_of_kimi_linear_decays_are_a_softplus_and_gates_of_low_rank() -> None:
    kda = import_config(config(LINEAR)).layers[0].pattern[0].mixer
    assert isinstance(kda, Kda)
    assert (kda.decay, kda.decay_rank, kda.gate_rank) == (SoftplusDecay(kind="softplus"), 128, 128)


def test_latent_attention_of_kimi_has_no_rope_and_norms_with_an_eps_of_their_own() -> None:
    mla = import_config(config("Kimi-K3")).layers[-1].pattern[0].mixer
    assert isinstance(mla, Mla)
    assert (mla.rope, mla.q_rank, mla.output_gate, mla.scale) == (None, 1536, True, None)
    assert mla.q_norm is not None
    assert (mla.q_norm.eps, mla.kv_norm.eps) == (1e-6, 1e-6)
    plain = import_config(config(LINEAR)).layers[-1].pattern[-1].mixer
    assert isinstance(plain, Mla)
    assert (plain.q_rank, plain.q_norm, plain.output_gate) == (None, None, False)


def test_experts_of_kimi_k3_work_in_a_latent_that_is_normalised_behind_their_sum() -> None:
    spec = import_config(config("Kimi-K3"))
    moe = spec.layers[1].pattern[0].feed_forward
    assert moe.latent.norm_in is None
    assert (moe.latent.width, moe.latent.norm_out.eps) == (3584, 1e-5)
    assert (moe.experts, moe.top_k, moe.width, moe.shared.width) == (896, 16, 3072, 6144)
    assert moe.parameters_of_activation == moe.shared.parameters_of_activation == {"beta": 4.0, "linear_beta": 25.0}
    assert spec.quantization.formats == ("bf16", "mxfp4")
    assert spec.quantization.format("experts") == "mxfp4"
    unnormed = import_config(config("Kimi-K3", latent_moe_use_norm=False)).layers[1].pattern[0].feed_forward
    assert unnormed.latent.norm_out is None


def test_residuals_of_kimi_k3_mix_blocks_of_layers() -> None:
    assert import_config(config("Kimi-K3")).residual.model_dump() == {
        "kind": "block_attention",
        "block": 12,
        "eps": 1e-5,
    }
    assert import_config(config(LINEAR)).residual.kind == "plain"


def test_no_width_of_a_head_is_derived_from_the_width_of_the_model() -> None:
    assert import_config(config("Kimi-K3", head_dim=74)) == import_config(config("Kimi-K3"))
    assert import_config(config(LINEAR, head_dim=...)) == import_config(config(LINEAR))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"mla_use_nope": False}, "mla_use_nope: False: latent attention with rope is not known for this family"),
        ({"linear_attn_config__gate_lower_bound": 5.0},
         "linear_attn_config.gate_lower_bound: 5: logarithms of decays are below 0, and so is their bound"),
        ({"linear_attn_config__surprise": 1},
         "linear_attn_config.surprise: unknown key, so what it asks for is unknown too"),
        ({"moe_router_activation_func": "softmax"},
         "moe_router_activation_func: 'softmax': only the sigmoid is known for this family"),
        ({"hidden_act": "situ", "activation_situ_beta": 4.0},
         "activation_situ_linear_beta: missing; it must be a number"),
        ({"activation_situ_beta": 4.0}, "activation_situ_beta: situ is not known in this family"),
        ({"moe_layer_freq": 2}, "moe_layer_freq: 2: experts in every layer after the dense ones are known"),
        ({"layer_types": ["linear_attention"] * 27}, "layer_types: ['linear_attention', 'linear_attention', "),
    ],
)  # fmt: skip
def test_what_kimi_linear_cannot_be_asked_for_is_refused_by_its_key(changes: dict[str, Any], line: str) -> None:
    (found,) = refusals(config(LINEAR, **changes))
    assert found.startswith(line)


def test_a_config_of_transformers_says_the_same_as_the_published_one() -> None:
    """But for its own default of which layers are full: every fourth from 4 on."""
    published = config(LINEAR)
    full = published["linear_attn_config"]["full_attn_layers"]
    types = ["full_attention" if layer + 1 in full else "linear_attention" for layer in range(27)]
    default = config("hfdefault-kimi_linear", layer_types=types, eos_token_id=163586)
    assert import_config(default) == import_config(published)
    assert layers_of(import_config(config("hfdefault-kimi_linear")), "mla") == [4, 8, 12, 16, 20, 24]


# ---- Qwen


@pytest.mark.parametrize(("name", "layers"), [("Qwen3.5-27B", 64), ("Qwen3.5-35B-A3B", 40), ("Qwen3.6-27B-NVFP4", 64)])
def test_every_fourth_layer_of_qwen_attends(name: str, layers: int) -> None:
    spec = import_config(config(name))
    assert [(run.repeat, len(run.pattern)) for run in spec.layers] == [(layers // 4, 4)]
    assert kinds(spec)[:4] == ["gated_delta"] * 3 + ["gqa"]
    by_interval = config(name, layer_types=..., full_attention_interval=4)
    assert import_config(by_interval) == spec


def test_qwen_3_5_has_fewer_key_than_value_heads_and_a_norm_without_offset_behind_them() -> None:
    block = import_config(config("Qwen3.5-27B")).layers[0].pattern[0]
    delta = block.mixer
    assert isinstance(delta, GatedDelta)
    assert (delta.key_heads, delta.value_heads, delta.key_dim, delta.value_dim, delta.conv) == (16, 48, 128, 128, 4)
    assert (delta.output_norm.unit_offset, block.norm.unit_offset) == (False, True)


def test_attention_of_qwen_3_5_is_gated_and_turns_a_quarter_of_each_head() -> None:
    gqa = import_config(config("Qwen3.5-27B")).layers[0].pattern[3].mixer
    assert isinstance(gqa, Gqa)
    assert (gqa.heads, gqa.kv_heads, gqa.head_dim, gqa.output_gate) == (24, 4, 256, True)
    assert gqa.rope is not None
    assert gqa.qk_norm is not None
    assert (gqa.rope.theta, gqa.rotary_dim, gqa.rope.scaling) == (1e7, 64, None)
    assert (gqa.qk_norm.unit_offset, gqa.qk_norm_over) == (True, "head")


def test_experts_of_qwen_3_5_have_a_shared_one_with_a_gate_of_its_own() -> None:
    moe = import_config(config("Qwen3.5-122B-A10B")).layers[0].pattern[0].feed_forward
    assert (moe.experts, moe.top_k, moe.width, moe.shared.width, moe.shared_gate) == (256, 8, 1024, 1024, True)
    assert (moe.router.score, moe.router.renormalise, moe.router.selection_bias) == ("softmax", True, False)


def test_a_checkpoint_of_several_formats_has_one_a_family() -> None:
    imported = import_with_report(config("Qwen3.6-27B-NVFP4"))
    formats = imported.spec.quantization.model_dump(exclude_defaults=True)
    assert formats == {"attention": "fp8", "dense": "nvfp4", "head": "nvfp4"}
    assert imported.spec.quantization.format("decay") == "bf16"
    assert [line.split(":")[0].rpartition(".")[2] for line in imported.left_out] == [
        "vision_config",
        "mtp_num_hidden_layers",
        "kv_cache_scheme",
        "input_activations",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"attn_output_gate": False},
         "attn_output_gate: False: attention without a gate of its output is not known in this family"),
        ({"output_gate_type": "sigmoid"}, "output_gate_type: 'sigmoid': only silu is known for this family"),
        ({"mamba_ssm_dtype": "bfloat16"}, "mamba_ssm_dtype: 'bfloat16': states are float32"),
        ({"layer_types": ["linear_attention"] * 63},
         "layer_types: must be 64 entries of linear_attention or full_attention"),
        ({"rope_parameters__factor": 4.0}, "rope_parameters.factor: not a key of default scaling"),
        ({"linear_num_value_heads": ...}, "linear_num_value_heads: missing; it must be a whole number"),
    ],
)  # fmt: skip
def test_what_qwen_3_5_cannot_be_asked_for_is_refused_by_its_key(changes: dict[str, Any], line: str) -> None:
    assert refusals(config("Qwen3.5-27B", **changes)) == [f"text_config.{line}"]


def test_qwen_3_next_has_experts_in_every_nth_layer_but_those_that_are_dense() -> None:
    data = config("Qwen3.5-35B-A3B")["text_config"] | {
        "model_type": "qwen3_next",
        "decoder_sparse_step": 2,
        "mlp_only_layers": [3],
        "intermediate_size": 512,
    }
    spec = import_config(data)
    dense = [at.layer for at in spec.iter_layers() if at.block.feed_forward.kind == "dense"]
    assert dense[:4] == [0, 2, 3, 4]
    assert spec.num_layers == 40
