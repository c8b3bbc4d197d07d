"""`quantization_config` becomes formats by weight family, or is refused by its key."""

import copy
import json
from pathlib import Path

import pytest

from schedc.errors import ConfigError
from schedc.spec.importers.import_config import import_config, import_with_report
from schedc.spec.importers.quantization import matches

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
FAMILIES = ("attention", "dense", "experts", "shared", "router", "head")


def quantised(name: str, **changes) -> dict:
    """A published config, with changes of its quantization_config."""
    data = json.loads((CONFIGS / f"{name}.json").read_text())
    inner = data.get("text_config", data)
    own = copy.deepcopy(inner["quantization_config"]) | changes
    inner["quantization_config"] = {key: value for key, value in own.items() if value is not ...}
    return data


def formats(data: dict) -> dict[str, str]:
    quantization = import_config(data).quantization
    return {family: quantization.format(family) for family in FAMILIES}


def refusals(data: dict) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        import_config(data)
    return list(caught.value.problems)


def everywhere(format: str) -> dict[str, str]:
    return dict.fromkeys(("attention", "dense", "experts", "shared"), format) | {"router": "bf16", "head": "bf16"}


def test_blocks_of_fp8_are_in_every_projection_but_routers_and_the_head():
    assert formats(quantised("DeepSeek-V3")) == everywhere("fp8_block128")
    assert formats(quantised("DeepSeek-V3", weight_block_size=...)) == everywhere("fp8")


def test_modules_that_are_not_converted_stay_as_they_are():
    kept = quantised("DeepSeek-V3", modules_to_not_convert=["self_attn"])
    assert formats(kept) == everywhere("fp8_block128") | {"attention": "bf16"}
    assert formats(quantised("MiniMax-M2.5")) == everywhere("fp8_block128")  # its gate is a router, not a projection


def test_mxfp4_of_gpt_oss_is_in_the_experts_alone():
    assert formats(quantised("gpt-oss-20b")) == everywhere("bf16") | {"experts": "mxfp4"}


def test_compressed_tensors_quantise_what_they_do_not_ignore():
    assert formats(quantised("Kimi-K2.5")) == everywhere("bf16") | {"experts": "int4_g32"}
    everything = quantised("Kimi-K2.5", ignore=[])
    assert formats(everything) == everywhere("int4_g32") | {"head": "int4_g32"}


def test_model_optimizer_names_one_algorithm_for_all_or_groups():
    plain = {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "*self_attn*"]}
    data = quantised("DeepSeek-V3") | {"quantization_config": plain}
    assert formats(data) == everywhere("nvfp4") | {"attention": "bf16"}
    data["quantization_config"] = plain | {"quant_algo": "INT4_AWQ"}
    assert refusals(data) == [
        "quantization_config.quant_algo: 'INT4_AWQ' is not supported; known: NVFP4, W4A16_NVFP4, FP8"
    ]


@pytest.mark.parametrize(("kind", "stored"), [("int", "int8"), ("float", "fp8")])
def test_a_scale_a_channel_or_a_tensor_is_a_scale_a_column(kind: str, stored: str):
    for strategy in ("channel", "tensor"):
        group = {"targets": ["Linear"], "weights": {"type": kind, "num_bits": 8, "strategy": strategy}}
        assert formats(quantised("Kimi-K2.5", config_groups={"g": group}))["experts"] == stored


def test_a_family_in_two_formats_is_refused_by_name():
    (line,) = refusals(quantised("DeepSeek-V3", modules_to_not_convert=["model.layers.7.self_attn.o_proj"]))
    assert line == (
        "quantization_config.ignore: the attention projections are stored in several formats "
        "(fp8_block128, not quantised); only one is known"
    )


def test_quantised_inputs_of_projections_are_left_out_aloud():
    (line,) = [line for line in import_with_report(quantised("Kimi-K2-Instruct")).left_out if "activation" in line]
    assert line == (
        "quantization_config.activation_scheme: left out: inputs of projections stay in the operand's dtype, they are "
        "not quantised"
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"quant_method": "gptq"}, "quantization_config.quant_method: 'gptq' is not supported; known: "
                                   "compressed-tensors, fp8, modelopt, mxfp4"),
        ({"fmt": "e5m2"}, "quantization_config.fmt: 'e5m2': only e4m3 is known"),
        ({"weight_block_size": [64, 64]}, "quantization_config.weight_block_size: [64, 64]: only blocks of 128×128, or "
                                          "none, are known"),
        ({"surprise": 1}, "quantization_config.surprise: unknown key, so what it asks for is unknown too"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_by_its_key(changes, line):
    assert refusals(quantised("DeepSeek-V3", **changes)) == [line]


def test_weights_in_no_known_format_are_refused_with_what_they_are():
    groups = {"g": {"targets": ["Linear"], "weights": {"type": "int", "num_bits": 3, "symmetric": True}}}
    assert refusals(quantised("Kimi-K2.5", config_groups=groups)) == [
        "text_config.quantization_config.config_groups.g.weights: no known format: type int, num_bits 3, symmetric True"
    ]


@pytest.mark.parametrize("name", ["DeepSeek-V3", "Kimi-K2.5", "gpt-oss-20b"])
def test_no_value_of_any_key_ends_in_a_traceback(name):
    data = quantised(name)
    for key in data.get("text_config", data)["quantization_config"]:
        for value in (None, True, -1, 2.5, "x", [], ["re:("], [1], {}, {"g": {}}, {"g": {"weights": [1]}}):
            try:
                import_config(quantised(name, **{key: value}))
            except ConfigError as error:
                assert error.problems


@pytest.mark.parametrize(
    ("pattern", "module", "same"),
    [
        ("lm_head", "lm_head", True),
        ("self_attn", "model.layers.3.self_attn.q_proj", True),
        ("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj", True),
        ("model.layers.3", "model.layers.31.self_attn.q_proj", False),
        ("gate", "model.layers.3.mlp.gate_proj", False),
        (r"re:.*mlp\.(gate|up)_proj.*", "model.layers.3.mlp.up_proj", True),
        (r"re:.*mlp\.(gate|up)_proj.*", "model.layers.3.mlp.experts.0.up_proj", False),
    ],
)
def test_a_pattern_stands_for_whole_parts_of_a_name(pattern, module, same):
    assert matches(pattern, module) is same
