"""A config becomes a spec, or is refused with every key that a spec cannot express."""

import contextlib
import json
import math
import re
from pathlib import Path

import pytest

from schedc.errors import ConfigError, UserError
from schedc.spec.dump import dump_spec
from schedc.spec.importers.import_config import import_config, import_with_report
from schedc.spec.importers.runs import runs

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
MODEL_SPECS = Path(__file__).parents[2] / "model_specs"

PACKAGED = {
    "deepseek-v2-lite": "deepseek-v2-lite",
    "deepseek-v3": "DeepSeek-V3",
    "exaone-4.0-32b": "EXAONE-4.0-32B",
    "gemma-2-9b": "mlc-gemma2_9b",
    "gemma-3-1b": "mlc-gemma3_1b_it",
    "glm-4.5": "GLM-4.5-rtp",
    "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
    "kimi-k2": "Kimi-K2-Instruct",
    "kimi-k2.5": "Kimi-K2.5",
    "kimi-k3": "Kimi-K3",
    "kimi-linear-48b": "Kimi-Linear-48B-A3B-Instruct",
    "llama-2-7b": "llama-2-7b-hf",
    "llama-3.1-70b": "Meta-Llama-3.1-70B",
    "llama-3.1-8b": "Meta-Llama-3.1-8B",
    "llama-4-scout": "Llama-4-Scout-17B-16E-Instruct",
    "minimax-m2.5": "MiniMax-M2.5",
    "mistral-nemo": "mistral-nemo-instruct-2407",
    "muse-spark": "hfdefault-muse_spark_text",
    "olmo-2-7b": "mlc-olmo2_7b",
    "phi-3.5-mini": "mlc-phi-3_5",
    "qwen2.5-7b": "qwen2.5-7b-instruct",
    "qwen3-0.6b": "Qwen3-0.6B",
    "qwen3.5-122b-a10b": "Qwen3.5-122B-A10B",
    "qwen3.5-27b": "Qwen3.5-27B",
    "qwen3.5-35b-a3b": "Qwen3.5-35B-A3B",
    "qwen3.6-27b-nvfp4": "Qwen3.6-27B-NVFP4",
    "mixtral-8x22b": "Mixtral-8x22B-v0.1",
    "qwen3-235b-a22b": "Qwen3-235B-A22B",
    "qwen3-30b-a3b": "Qwen3-30B-A3B",
    "qwen3-8b": "Qwen3-8B",
    "smollm2-135m": "mlc-smollm2_135m",
    "starcoder2-7b": "mlc-starcoder2",
}
SCALED_DOWN = ("kimi-k3-mini",)
"""No published model; tests/spec/test_scaled_down.py says of what."""
ROPE_JUNK = {"rope_type": "yarn", "factor": "x", "rope_theta": [], "type": [1], "partial_rotary_factor": "x"}
EXPRESSIBLE = {
    *PACKAGED.values(),
    "DeepSeek-R1",
    "DeepSeek-V3",
    "GLM-4.5-rtp",
    "Kimi-K2-Instruct",
    "Kimi-K2.5",
    "Llama-4-Scout-17B-16E-Instruct",
    "MiniMax-M2.5",
    "Mixtral-8x7B-v0.1",
    "Qwen3-235B-A22B-FP8",
    "deepseek-v2-lite",
    "gpt-oss-120b",
    "gpt-oss-20b",
    "hfdefault-kimi_linear",
    "hfdefault-muse_spark_text",
}


def config(name: str, **changes) -> dict:
    data = json.loads((CONFIGS / f"{name}.json").read_text())
    return {key: value for key, value in (data | changes).items() if value is not ...}


def refusals(data: dict | Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        import_config(data)
    return list(caught.value.problems)


@pytest.mark.parametrize("name", PACKAGED)
def test_the_specs_that_come_with_schedc_are_their_imported_configs(name):
    source = f"{PACKAGED[name]}.json"
    imported = import_with_report(CONFIGS / source, name)
    assert (MODEL_SPECS / f"{name}.yaml").read_text() == dump_spec(imported.spec, source, imported.left_out)


def test_every_packaged_spec_has_a_config():
    assert sorted(path.stem for path in MODEL_SPECS.glob("*.yaml")) == sorted([*PACKAGED, *SCALED_DOWN])


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_published_config_is_a_spec_or_is_refused_by_key(path):
    if path.stem in EXPRESSIBLE:
        data = json.loads(path.read_text())
        assert import_config(path).num_layers == data.get("text_config", data)["num_hidden_layers"]
    else:
        keys = [line.split(": ")[0] for line in refusals(path)]
        assert keys[0] == "model_type"
        assert len(set(keys)) == len(keys)


def test_a_refusal_names_every_key_at_once():
    data = config("Qwen3-8B", num_experts=8, hidden_act="mish", surprise=1, head_dim="x", rope_scaling={"type": "ntk"})
    assert sorted(refusals(data)) == [
        "head_dim: 'x' is not a whole number",
        "hidden_act: activation 'mish' is not supported; known: "
        "silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, relu2",
        "num_experts: experts are not known in this family",
        "rope_scaling.rope_type: scaling 'ntk' is not supported; known: linear, llama3, yarn, longrope",
        "surprise: unknown key, so what it asks for is unknown too",
    ]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("falcon-40b",
         ["model_type: falcon: attention and feed-forward in parallel are not supported",
          "parallel_attn: attention and feed-forward in parallel are not supported"]),
        ("mlc-gpt2",
         ["model_type: gpt2: learned positions are not supported", "n_ctx: learned positions are not supported",
          "n_positions: learned positions are not supported"]),
    ],
)  # fmt: skip
def test_what_a_family_needs_and_a_spec_lacks_is_named(name, lines):
    assert refusals(config(name)) == lines


def test_the_text_model_inside_a_multimodal_config_of_an_unknown_kind_is_looked_into():
    data = config("Kimi-K3", model_type="kimi_k4")
    data["text_config"]["index_topk"] = 2048
    first, *lines = refusals(data)
    assert first.startswith("model_type: kimi_k4 is not a family that can be imported; known: deepseek_v2, ")
    assert lines == ["text_config.index_topk: sparse attention is not supported"]


def test_of_a_multimodal_config_the_text_model_is_imported_and_the_rest_said_to_be_left_out():
    data = config("Llama-4-Scout-17B-16E-Instruct", vision_config={"hidden_size": 8}, image_token_index=3)
    imported = import_with_report(data)
    assert imported.spec.hidden == data["text_config"]["hidden_size"]
    assert imported.left_out == ("vision_config: left out: the vision tower is not imported, only the text model",)


def test_a_key_of_the_wrapper_and_one_of_the_text_model_must_agree():
    data = config("Llama-4-Scout-17B-16E-Instruct", eos_token_id=7, surprise=1)
    data["text_config"] |= {"eos_token_id": 8, "wonder": 1}
    assert refusals(data) == [
        "eos_token_id: 7 disagrees with text_config.eos_token_id 8",
        "surprise: unknown key, so what it asks for is unknown too",
        "text_config.wonder: unknown key, so what it asks for is unknown too",
    ]


def test_layers_that_predict_further_tokens_are_left_out_aloud():
    imported = import_with_report(config("GLM-4.5-rtp"))
    assert imported.spec.num_layers == 92
    assert imported.left_out == (
        "num_nextn_predict_layers: left out: layers that predict further tokens take no part in decoding one token",
    )
    assert import_with_report(config("GLM-4.5-rtp", num_nextn_predict_layers=0)).left_out == ()


def layer(name: str, index: int):
    return next(at.block for at in import_config(config(name)).iter_layers() if at.layer == index)


def test_yarn_of_latent_attention_scales_the_scores_by_the_square_of_its_second_factor():
    mixer = layer("deepseek-v2-lite", 3).mixer
    assert mixer.score_scale == pytest.approx(192**-0.5 * (0.1 * 0.707 * math.log(40) + 1) ** 2)
    assert mixer.rope.pairs == "adjacent" and mixer.q_rank is None


def test_the_first_layers_of_glm_are_dense_and_half_of_its_heads_turns():
    assert [layer("GLM-4.5-rtp", index).feed_forward.kind for index in (2, 3)] == ["dense", "moe"]
    mixer = layer("GLM-4.5-rtp", 3).mixer
    assert (mixer.rotary_dim, mixer.head_dim, mixer.bias.q, mixer.bias.o) == (64, 128, True, False)


def test_every_fourth_layer_of_llama_4_is_full_without_rope_and_tuned_by_position():
    chunked, full = (layer("Llama-4-Scout-17B-16E-Instruct", index).mixer for index in (2, 3))
    assert (chunked.chunk, chunked.rope.pairs, chunked.qk_norm_after_rope, chunked.temperature) == (
        8192, "adjacent", True, None,
    )  # fmt: skip
    assert (full.chunk, full.rope, full.qk_norm) == (None, None, None)
    assert (full.temperature.scale, full.temperature.interval) == (0.1, 8192)


def test_muse_spark_counts_its_full_layers_back_from_the_last():
    name = "hfdefault-muse_spark_text"
    full = [at.layer for at in import_config(config(name)).iter_layers() if at.block.mixer.window is None]
    assert full == list(range(1, 62, 4))
    block = layer(name, 1)
    assert block.mixer.rope is None and block.mixer.score_scale == pytest.approx(5.4730064863875 / 8)
    assert (block.post_mixer_norm.weight, block.post_feed_forward_norm.scale_first) == (False, True)


def test_heads_that_do_not_divide_are_refused_by_the_spec():
    assert refusals(config("Qwen3-8B", num_key_value_heads=7)) == [
        "layers[0].pattern[0].mixer.heads: 32 heads do not divide into 7 kv heads; use a multiple of 7"
    ]


def test_a_missing_key_without_a_default_is_named():
    assert refusals(config("Qwen3-8B", vocab_size=...)) == ["vocab_size: missing; it must be a whole number"]


@pytest.mark.parametrize("name", sorted(EXPRESSIBLE))
def test_no_value_of_any_key_ends_in_a_traceback(name):
    """Every single key with every kind of wrong value: a spec or a refusal, nothing else."""
    data = config(name)
    inner = data.get("text_config", {})
    for value in (None, True, -1, 0, 2.5, "x", [], ["x"], {}, ROPE_JUNK):
        wrong = [data | {key: value} for key in data]
        wrong += [data | {"text_config": inner | {key: value}} for key in inner]
        for changed in wrong:
            with contextlib.suppress(ConfigError):
                import_config(changed)


def test_broken_json_is_refused_with_its_place(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama",}')
    with pytest.raises(UserError, match=re.escape(f"{path}: line 1, column 24:")):
        import_config(path)


def test_a_model_is_named_after_its_folder_or_its_file(tmp_path: Path):
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    for name in ("config.json", "Other.json"):
        (folder / name).write_text(json.dumps(config("Qwen3-8B")))
    assert import_config(folder / "config.json").name == "qwen3-8b"
    assert import_config(folder / "Other.json").name == "other"


def test_llama_2_has_the_theta_of_its_family():
    assert import_config(config("llama-2-7b-hf")).layers[0].pattern[0].mixer.rope.theta == 10_000.0


def test_qwen2_has_a_window_only_where_its_switch_says_so():
    assert {at.block.mixer.window for at in import_config(config("qwen2.5-7b-instruct")).iter_layers()} == {None}
    data = config("qwen2.5-7b-instruct", use_sliding_window=True, max_window_layers=20)
    windows = [at.block.mixer.window for at in import_config(data).iter_layers()]
    assert windows == [None] * 20 + [131072] * 8


def test_sliding_layers_without_a_window_are_refused():
    line = "sliding_window: no window, and some layers are of kind sliding_attention"
    assert refusals(config("mlc-gemma2_9b", sliding_window=None)) == [line]
    assert refusals(config("qwen2.5-7b-instruct", layer_types=["sliding_attention"] * 28)) == [line]


def test_a_layer_of_another_kind_is_refused():
    types = ["full_attention"] * 27 + ["chunked_attention"]
    assert refusals(config("qwen2.5-7b-instruct", layer_types=types)) == [
        "layer_types: layers of kind chunked_attention are not supported"
    ]


def test_mistral_has_a_window_unless_its_config_switches_it_off():
    windows = {
        value: import_config(config("mistral-nemo-instruct-2407", sliding_window=value))
        .layers[0]
        .pattern[0]
        .mixer.window
        for value in (..., None, 1024)
    }
    assert windows == {...: 4096, None: None, 1024: 1024}


def test_kv_heads_default_to_heads_only_where_the_family_says_so():
    assert import_config(config("llama-2-7b-hf", num_key_value_heads=...)).layers[0].pattern[0].mixer.kv_heads == 32
    assert refusals(config("Qwen3-8B", num_key_value_heads=...)) == [
        "num_key_value_heads: missing; it must be a whole number"
    ]


def test_starcoder2_is_tied_unless_its_config_says_otherwise():
    assert import_config(config("mlc-starcoder2")).embedding.tied
    assert not import_config(config("mlc-starcoder2", tie_word_embeddings=False)).embedding.tied


def test_rope_parameters_of_newer_configs_mean_the_same():
    old = config("Meta-Llama-3.1-8B")
    parameters = old["rope_scaling"] | {"rope_theta": old["rope_theta"]}
    new = config("Meta-Llama-3.1-8B", rope_scaling=..., rope_theta=..., rope_parameters=parameters)
    assert import_config(new) == import_config(old)


def test_two_ropes_that_disagree_are_refused():
    data = config(
        "Meta-Llama-3.1-8B", rope_parameters={"rope_type": "default", "rope_theta": 1e4}, rope_scaling={"a": 1}
    )
    assert refusals(data) == [
        "rope_scaling: {'a': 1}: disagrees with rope_parameters",
        "rope_theta: 500000 disagrees with rope_parameters.rope_theta 10000",
    ]


def test_gemma_2_alternates_windows_and_multiplies_its_embedding():
    spec = import_config(config("mlc-gemma2_9b"))
    assert [(run.repeat, len(run.pattern)) for run in spec.layers] == [(21, 2)]
    local, full = spec.layers[0].pattern
    assert (local.mixer.window, full.mixer.window) == (4096, None)
    assert (local.placement, local.norm.unit_offset, local.mixer.soft_cap) == ("sandwich", True, 50.0)
    assert spec.embedding.multiplier == 3584**0.5
    assert spec.head.soft_cap == 30.0
    assert import_config(config("mlc-gemma2_9b", final_logit_softcapping=None)).head.soft_cap is None


def test_gemma_3_has_two_thetas_and_a_tail_that_breaks_its_period():
    spec = import_config(config("mlc-gemma3_1b_it"))
    assert [(run.repeat, len(run.pattern)) for run in spec.layers] == [(4, 6), (1, 2)]
    thetas = [block.mixer.rope.theta for block in spec.layers[0].pattern]
    assert thetas == [10_000.0] * 5 + [1_000_000.0]
    assert spec.layers[1].pattern == spec.layers[0].pattern[:2]


def test_exaone_4_turns_nothing_in_its_full_layers():
    local, *_, full = import_config(config("EXAONE-4.0-32B")).layers[0].pattern
    assert (local.mixer.window, full.mixer.window) == (4096, None)
    assert local.mixer.rope is not None
    assert full.mixer.rope is None
    assert full.placement == "post"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("aaaa", [(4, "a")]),
        ("aabb", [(2, "a"), (2, "b")]),
        ("abab", [(2, "ab")]),
        ("ababa", [(2, "ab"), (1, "a")]),
        ("aabaab", [(2, "aab")]),
        ("ddaaaa", [(2, "d"), (4, "a")]),
        ("daababaab", [(1, "d"), (2, "a"), (2, "ba"), (1, "ab")]),
        ("d" + "aaba" * 22 + "aabb", [(1, "d"), (22, "aaba"), (2, "a"), (2, "b")]),
        ("d" + "aaba" * 6 + "ab", [(1, "d"), (6, "aaba"), (1, "ab")]),
        ("a", [(1, "a")]),
        ("", []),
    ],
)
def test_layers_are_put_into_the_fewest_blocks(layers, expected):
    found = runs([{"layer": letter} for letter in layers])
    assert [(run["repeat"], "".join(block["layer"] for block in run["pattern"])) for run in found] == expected


def test_longrope_takes_its_lengths_from_the_config_and_its_factors_as_they_are():
    factors = {"short_factor": [1] * 48, "long_factor": [1.5] * 48}
    data = config("mlc-phi-3_5", rope_scaling={"type": "su", **factors})
    scaling = import_config(data).layers[0].pattern[0].mixer.rope.scaling
    assert (scaling.factor, scaling.original_max_position, scaling.sequences) == (131072 / 4096, 4096, "short")
    assert (scaling.short_factor, scaling.long_factor) == ((1.0,) * 48, (1.5,) * 48)


def test_faults_of_longrope_are_named():
    short = config("mlc-phi-3_5", rope_scaling={"type": "longrope", "short_factor": [1.0], "beta": 1})
    assert refusals(short) == [
        "rope_scaling.beta: not a key of longrope scaling",
        "rope_scaling.long_factor: must be a list of numbers, one a pair of dimensions",
    ]
    few = config("mlc-phi-3_5", rope_scaling={"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]})
    assert refusals(few) == ["layers[0].pattern[0].mixer.rope.scaling.short_factor: 1 numbers for 48 pairs; one a pair"]


def test_mixtral_and_qwen_3_renormalise_what_a_softmax_over_all_experts_gives():
    mixtral = import_config(config("Mixtral-8x22B-v0.1")).layers[0].pattern[0].feed_forward
    assert (mixtral.experts, mixtral.top_k, mixtral.width) == (8, 2, 16384)
    qwen = import_config(config("Qwen3-30B-A3B")).layers[0].pattern[0].feed_forward
    assert (qwen.experts, qwen.top_k, qwen.width) == (128, 8, 768)
    assert mixtral.router == qwen.router
    assert (qwen.router.score, qwen.router.renormalise) == ("softmax", True)
    as_they_are = import_config(config("Qwen3-30B-A3B", norm_topk_prob=...)).layers[0].pattern[0].feed_forward
    assert not as_they_are.router.renormalise


def test_the_number_of_experts_of_qwen_3_may_have_the_name_that_transformers_5_gives_it():
    renamed = config("Qwen3-30B-A3B", num_experts=..., num_local_experts=128)
    assert import_config(renamed) == import_config(config("Qwen3-30B-A3B"))
    assert refusals(renamed | {"num_experts": 64}) == [
        "num_experts: is not num_local_experts, 128; both are the number of experts"
    ]


def test_qwen_3_has_experts_in_every_nth_layer_but_those_that_are_dense():
    sparse = config("Qwen3-30B-A3B", num_hidden_layers=8, decoder_sparse_step=2, mlp_only_layers=[5])
    kinds = [at.block.feed_forward.kind for at in import_config(sparse).iter_layers()]
    assert kinds == ["dense", "moe", "dense", "moe", "dense", "dense", "dense", "moe"]
    assert refusals(sparse | {"mlp_only_layers": ["five"]}) == ["mlp_only_layers: must be a list of layer numbers"]


def test_gemma3_has_a_rope_for_each_type_of_layer():
    each = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    data = config("mlc-gemma3_1b_it", rope_theta=..., rope_local_base_freq=..., rope_scaling=..., rope_parameters=each)
    pattern = import_config(data).layers[0].pattern
    assert [(block.mixer.window, block.mixer.rope.theta) for block in pattern] == [(512, 1e4)] * 5 + [(None, 1e6)]
    assert pattern[5].mixer.rope.scaling.factor == 8.0
    assert pattern[0].mixer.rope.scaling is None
    del each["sliding_attention"]
    assert "rope_parameters.sliding_attention: missing" in refusals(data)
