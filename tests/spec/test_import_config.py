"""A config becomes a spec, or is refused with every key that a spec cannot express."""

import contextlib
import json
import re
from pathlib import Path

import pytest

from schedc.errors import ConfigError, UserError
from schedc.spec.dump import dump_spec
from schedc.spec.importers.decoder import runs
from schedc.spec.importers.import_config import import_config

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
MODEL_SPECS = Path(__file__).parents[2] / "model_specs"

PACKAGED = {
    "llama-2-7b": "llama-2-7b-hf",
    "llama-3.1-8b": "Meta-Llama-3.1-8B",
    "mistral-nemo": "mistral-nemo-instruct-2407",
    "qwen2.5-7b": "qwen2.5-7b-instruct",
    "qwen3-0.6b": "Qwen3-0.6B",
    "qwen3-8b": "Qwen3-8B",
    "smollm2-135m": "mlc-smollm2_135m",
    "starcoder2-7b": "mlc-starcoder2",
}
ROPE_JUNK = {"rope_type": "yarn", "factor": "x", "rope_theta": [], "type": [1], "partial_rotary_factor": "x"}
EXPRESSIBLE = {*PACKAGED.values(), "EXAONE-4.0-32B", "Meta-Llama-3.1-70B", "mlc-gemma2_9b", "mlc-gemma3_1b_it"}


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
    assert (MODEL_SPECS / f"{name}.yaml").read_text() == dump_spec(import_config(CONFIGS / source, name), source)


def test_every_packaged_spec_has_a_config():
    assert sorted(path.stem for path in MODEL_SPECS.glob("*.yaml")) == sorted(PACKAGED)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_published_config_is_a_spec_or_is_refused_by_key(path):
    if path.stem in EXPRESSIBLE:
        assert import_config(path).num_layers == json.loads(path.read_text())["num_hidden_layers"]
    else:
        keys = [line.split(": ")[0] for line in refusals(path)]
        assert keys[0] in ("model_type", "rope_scaling.rope_type")
        assert len(set(keys)) == len(keys)


def test_a_refusal_names_every_key_at_once():
    data = config("Qwen3-8B", num_experts=8, hidden_act="mish", surprise=1, head_dim="x", rope_scaling={"type": "ntk"})
    assert sorted(refusals(data)) == [
        "head_dim: 'x' is not a whole number",
        "hidden_act: activation 'mish' is not supported; known: "
        "silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, relu2",
        "num_experts: experts are not supported yet",
        "rope_scaling.rope_type: scaling 'ntk' is not supported; known: linear, llama3, yarn",
        "surprise: unknown key, so what it asks for is unknown too",
    ]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("mlc-phi-3_5", ["rope_scaling.rope_type: scaling 'longrope' is not supported; known: linear, llama3, yarn"]),
        ("mlc-olmo2_7b",
         ["model_type: olmo2: q and k are normalised over all heads jointly, a spec normalises each head"]),
        ("falcon-40b",
         ["model_type: falcon: attention and feed-forward in parallel are not supported",
          "parallel_attn: attention and feed-forward in parallel are not supported"]),
        ("mlc-gpt2",
         ["model_type: gpt2: learned positions are not supported", "n_ctx: learned positions are not supported",
          "n_positions: learned positions are not supported"]),
        ("Mixtral-8x7B-v0.1",
         ["model_type: mixtral: experts are not supported yet", "num_experts_per_tok: experts are not supported yet",
          "num_local_experts: experts are not supported yet", "router_aux_loss_coef: experts are not supported yet"]),
    ],
)  # fmt: skip
def test_what_a_family_needs_and_a_spec_lacks_is_named(name, lines):
    assert refusals(config(name)) == lines


def test_the_text_model_inside_a_multimodal_config_is_looked_into():
    lines = refusals(config("Kimi-K3"))
    assert "text_config.kv_lora_rank: latent attention (MLA) is not supported yet" in lines
    assert "vision_config: only text models are supported" in lines


def test_heads_that_do_not_divide_are_refused_by_the_spec():
    assert refusals(config("Qwen3-8B", num_key_value_heads=7)) == [
        "layers[0].pattern[0].mixer.heads: 32 heads do not divide into 7 kv heads; use a multiple of 7"
    ]


def test_a_missing_key_without_a_default_is_named():
    assert refusals(config("Qwen3-8B", vocab_size=...)) == ["vocab_size: missing; it must be a whole number"]


@pytest.mark.parametrize("name", sorted(EXPRESSIBLE))
def test_no_value_of_any_key_ends_in_a_traceback(name):
    """Every single key with every kind of wrong value: a spec or a refusal, nothing else."""
    for key in config(name):
        for value in (None, True, -1, 0, 2.5, "x", [], ["x"], {}, ROPE_JUNK):
            with contextlib.suppress(ConfigError):
                import_config(config(name, **{key: value}))


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
        ("a", [(1, "a")]),
        ("", []),
    ],
)
def test_layers_are_put_into_the_fewest_blocks(layers, expected):
    found = runs([{"layer": letter} for letter in layers])
    assert [(run["repeat"], "".join(block["layer"] for block in run["pattern"])) for run in found] == expected
