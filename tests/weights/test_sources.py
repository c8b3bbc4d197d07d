"""Weights read from files: by canonical name, in f32, in the spec's order; bad files refused with numbers."""

import json
import re
import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest
from ml_dtypes import bfloat16
from safetensors.numpy import save_file

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.head_order import for_kernel
from schedc.weights.open import open_weights
from schedc.weights.random_weights import RandomWeights
from schedc.weights.source import WeightSource, expected_shapes

HUGGING_FACE = {
    "embed": "model.embed_tokens.weight",
    "final_norm.weight": "model.norm.weight",
    "attn.q": "self_attn.q_proj.weight",
    "attn.q_bias": "self_attn.q_proj.bias",
    "attn.k": "self_attn.k_proj.weight",
    "attn.v": "self_attn.v_proj.weight",
    "attn.o": "self_attn.o_proj.weight",
    "mlp.gate": "mlp.gate_proj.weight",
    "mlp.up": "mlp.up_proj.weight",
    "mlp.down": "mlp.down_proj.weight",
    "pre_mixer_norm.weight": "input_layernorm.weight",
    "pre_feed_forward_norm.weight": "post_attention_layernorm.weight",
}


def hugging_face(source: WeightSource) -> dict[str, np.ndarray]:
    def name(canonical: str) -> str:
        if not canonical.startswith("layers."):
            return HUGGING_FACE[canonical]
        _, layer, suffix = canonical.split(".", 2)
        return f"model.layers.{layer}.{HUGGING_FACE[suffix]}"

    return {name(canonical): source.load(canonical) for canonical in source.names()}


def assert_same(found: WeightSource, expected: WeightSource, rounded: bool = False) -> None:
    assert set(found.names()) == set(expected.names())
    for name in expected.names():
        values = expected.load(name)
        np.testing.assert_array_equal(
            found.load(name), values.astype(bfloat16).astype(np.float32) if rounded else values, err_msg=name
        )
        assert found.shape(name) == values.shape


# ---- safetensors


def test_safetensors_of_every_dtype_are_read(spec: ModelSpec, tmp_path: Path) -> None:
    source = RandomWeights(spec, 0)
    save_file(hugging_face(source), tmp_path / "f32.safetensors")
    assert_same(open_weights(tmp_path / "f32.safetensors", spec), source)
    narrow = {name: values.astype(bfloat16) for name, values in hugging_face(source).items()}
    save_file(narrow, tmp_path / "model.safetensors")
    assert_same(open_weights(tmp_path, spec), source, rounded=True)


def test_shards_are_read_through_their_index(spec: ModelSpec, tmp_path: Path) -> None:
    source = RandomWeights(spec, 0)
    tensors = hugging_face(source)
    shards = {name: f"model-{index % 2}.safetensors" for index, name in enumerate(tensors)}
    for shard in set(shards.values()):
        save_file({name: tensors[name] for name in tensors if shards[name] == shard}, tmp_path / shard)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert_same(open_weights(tmp_path, spec), source)

    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(UserError, match=r"index.json: 1 of 2 files are missing: model-1.safetensors$"):
        open_weights(tmp_path, spec)


def test_row_ranges_are_the_rows_of_the_whole(spec: ModelSpec, tmp_path: Path) -> None:
    source = RandomWeights(spec, 0)
    save_file(hugging_face(source), tmp_path / "model.safetensors")
    for opened in (source, open_weights(tmp_path, spec), for_kernel(open_weights(tmp_path, spec), spec)):
        for name in ("layers.1.attn.q", "layers.0.attn.q_bias", "layers.1.attn.k", "layers.0.mlp.up"):
            for rows in ((0, 5), (3, 13), (7, 16)):
                np.testing.assert_array_equal(opened.load(name, rows), opened.load(name)[slice(*rows)])


def test_a_norm_is_named_by_the_placement_of_the_spec(spec: ModelSpec, tmp_path: Path) -> None:
    text = spec.model_dump_json().replace('"placement":"pre"', '"placement":"sandwich"')
    sandwich = ModelSpec.model_validate_json(text)
    source = RandomWeights(sandwich, 0)
    norms = {
        "pre_mixer_norm": "input_layernorm",
        "post_mixer_norm": "post_attention_layernorm",
        "pre_feed_forward_norm": "pre_feedforward_layernorm",
        "post_feed_forward_norm": "post_feedforward_layernorm",
    }
    tensors = {
        name: values
        for name, values in hugging_face(RandomWeights(spec, 0)).items()
        if not name.endswith("layernorm.weight")
    }
    for layer in range(2):
        for ours, theirs in norms.items():
            tensors[f"model.layers.{layer}.{theirs}.weight"] = source.load(f"layers.{layer}.{ours}.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    assert_same(open_weights(tmp_path, sandwich), source)


def test_everything_that_is_not_as_the_spec_says_is_named_at_once(spec: ModelSpec, tmp_path: Path) -> None:
    tensors = hugging_face(RandomWeights(spec, 0))
    tensors["model.layers.0.mlp.up_proj.weight"] = np.zeros((200, 41), np.float32)
    tensors["model.layers.1.self_attn.k_proj.bias"] = np.zeros(16, np.float32)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]  # tied: some files have it all the same
    del tensors["model.norm.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError) as error:
        open_weights(tmp_path, spec)
    assert str(error.value).splitlines() == [
        f"{tmp_path}: not the weights of small:",
        "  final_norm.weight: missing, expected [40]",
        "  layers.0.mlp.up: expected [200, 40], found [200, 41]",
        "  layers.1.attn.k_bias: not in the spec, found [16]",
    ]


def test_tensors_of_other_architectures_are_refused_by_name(spec: ModelSpec, tmp_path: Path) -> None:
    tensors = hugging_face(RandomWeights(spec, 0)) | {"model.layers.0.mlp.maze.weight": np.zeros(3, np.float32)}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"no decoder like small has these tensors: model.layers.0.mlp.maze"):
        open_weights(tmp_path, spec)


def test_a_truncated_safetensors_file_is_refused_with_its_bytes(spec: ModelSpec, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(hugging_face(RandomWeights(spec, 0)), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    message = f"{path}: truncated: expected {len(whole):,} bytes, found {len(whole) - 10:,}; fetch the file again"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        open_weights(path, spec)
    path.write_bytes(whole[:50])
    with pytest.raises(UserError, match=r"truncated in the header: expected [\d,]+ bytes or more, found 50"):
        open_weights(path, spec)
    path.write_bytes(b"not a weights file")
    with pytest.raises(UserError, match=r"not a safetensors file"):
        open_weights(path, spec)
    with pytest.raises(UserError, match=r"absent.bin: cannot be read: No such file or directory"):
        open_weights(tmp_path / "absent.bin", spec)


# ---- GGUF


def write_gguf(path: Path, spec: ModelSpec, architecture: str, quantized: gguf.GGMLQuantizationType | None) -> None:
    """As llama.cpp's converter does: with architecture llama, q and k in adjacent pairs."""
    names = {
        "embed": "token_embd.weight",
        "final_norm.weight": "output_norm.weight",
        "attn.q": "attn_q.weight",
        "attn.q_bias": "attn_q.bias",
        "attn.k": "attn_k.weight",
        "attn.v": "attn_v.weight",
        "attn.o": "attn_output.weight",
        "mlp.gate": "ffn_gate.weight",
        "mlp.up": "ffn_up.weight",
        "mlp.down": "ffn_down.weight",
        "pre_mixer_norm.weight": "attn_norm.weight",
        "pre_feed_forward_norm.weight": "ffn_norm.weight",
    }
    source, mixer = RandomWeights(spec, 0), spec.layers[0].pattern[0].mixer
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_array("some.names", ["a", "bc"])
    for name in source.names():
        _, layer, suffix = name.split(".", 2) if name.startswith("layers.") else ("", "", name)
        values = source.load(name)
        if architecture == "llama" and suffix in ("attn.q", "attn.q_bias", "attn.k"):
            heads = mixer.kv_heads if suffix == "attn.k" else mixer.heads
            values = values.reshape(heads, 2, mixer.head_dim // 2, *values.shape[1:]).swapaxes(1, 2)
            values = values.reshape(source.shape(name))
        tensor = f"blk.{layer}.{names[suffix]}" if layer else names[suffix]
        if quantized is not None and values.ndim == 2:
            writer.add_tensor(tensor, gguf.quants.quantize(values, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def halves(spec: ModelSpec) -> ModelSpec:
    """64 wide everywhere, so that rows have whole quantization blocks."""
    text = spec.model_dump_json().replace('"adjacent"', '"half"').replace('"hidden":40', '"hidden":64')
    return ModelSpec.model_validate_json(
        text.replace('"width":200', '"width":96').replace('"head_dim":8', '"head_dim":16')
    )


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_gguf_rows_are_put_back_in_the_order_of_the_spec(halves: ModelSpec, tmp_path: Path, architecture: str) -> None:
    write_gguf(tmp_path / "w.gguf", halves, architecture, None)
    opened = open_weights(tmp_path / "w.gguf", halves)
    assert_same(opened, RandomWeights(halves, 0))
    np.testing.assert_array_equal(opened.load("layers.1.attn.q", (5, 39)), opened.load("layers.1.attn.q")[5:39])


@pytest.mark.parametrize("quantized", ["Q8_0", "Q4_1", "BF16", "F16"])
def test_gguf_quantizations_are_undone(halves: ModelSpec, tmp_path: Path, quantized: str) -> None:
    kind = gguf.GGMLQuantizationType[quantized]
    write_gguf(tmp_path / "w.gguf", halves, "qwen2", kind)
    opened, source = open_weights(tmp_path / "w.gguf", halves), RandomWeights(halves, 0)
    for name in ("embed", "layers.1.mlp.up"):
        expected = gguf.quants.dequantize(gguf.quants.quantize(source.load(name), kind), kind)
        np.testing.assert_array_equal(opened.load(name), expected)
        np.testing.assert_array_equal(opened.load(name, (7, 20)), expected[7:20])


def test_an_unknown_architecture_is_refused(halves: ModelSpec, tmp_path: Path) -> None:
    write_gguf(tmp_path / "w.gguf", halves, "mamba", None)
    with pytest.raises(UserError, match=r"architecture 'mamba' is not supported; supported: llama, qwen2, qwen3, star"):
        open_weights(tmp_path / "w.gguf", halves)


def test_a_truncated_gguf_is_refused_with_its_bytes(smollm2: ModelSpec, smollm2_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.gguf"
    shutil.copy(smollm2_file, path)
    with path.open("r+b") as file:
        file.truncate(98_000_000)
    with pytest.raises(UserError) as error:
        open_weights(path, smollm2)
    assert str(error.value) == (
        f"{path}: truncated: expected 98,362,432 bytes, found 98,000,000; "
        "tensor blk.9.attn_output.weight ends at byte 98,083,648; fetch the file again"
    )
    with path.open("r+b") as file:
        file.truncate(1_000_000)
    with pytest.raises(
        UserError, match=r"truncated in metadata tokenizer.ggml.merges: expected 1,000,00\d bytes or more"
    ):
        open_weights(path, smollm2)
    path.write_bytes(b"PK\x03\x04 not a GGUF")
    with pytest.raises(UserError, match=r"not a GGUF file: begins with b'PK\\x03\\x04', expected b'GGUF'"):
        open_weights(path, smollm2)


def test_smollm2_has_the_weights_of_its_spec_and_of_no_other(smollm2: ModelSpec, smollm2_file: Path) -> None:
    opened = open_weights(smollm2_file, smollm2)
    assert {name: opened.shape(name) for name in opened.names()} == expected_shapes(smollm2)
    wider = ModelSpec.model_validate_json(smollm2.model_dump_json().replace('"width":1536', '"width":1537'))
    with pytest.raises(UserError) as error:
        open_weights(smollm2_file, wider)
    lines = str(error.value).splitlines()
    assert len(lines) == 1 + 3 * 30
    assert lines[1] == "  layers.0.mlp.gate: expected [1537, 576], found [1536, 576]"


def test_random_weights_repeat_for_a_seed_and_differ_for_another(spec: ModelSpec) -> None:
    first = RandomWeights(spec, 7)
    assert_same(first, RandomWeights(spec, 7))
    assert first.identity() != RandomWeights(spec, 8).identity()
    assert (first.load("layers.0.attn.q") != RandomWeights(spec, 8).load("layers.0.attn.q")).any()
    assert (first.load("layers.0.attn.q") != first.load("layers.1.attn.q")).any()
    assert np.abs(first.load("final_norm.weight") - 1).max() < 0.6
