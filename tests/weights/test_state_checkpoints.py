"""Checkpoints of families whose layers keep a state: what lies together comes apart, and nothing is dropped unsaid."""

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from safetensors.numpy import save_file

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.open import open_weights
from schedc.weights.random_weights import RandomWeights
from schedc.weights.selected_rows import SelectedRows, part_of_every_group
from schedc.weights.source import WeightSource, expected_shapes
from schedc.weights.tensor_names import Stored
from tests.weights.kimi_checkpoint import FLOAT32, LONGER, kimi_checkpoint, kimi_spec

RMS = {"kind": "rms", "eps": 1e-6}
OFFSET = RMS | {"unit_offset": True}


def qwen_spec(**quantization: str) -> ModelSpec:
    """A layer of the gated delta rule, 2 key heads for 6 value heads, and one of gated attention."""
    delta = {
        "kind": "gated_delta", "key_heads": 2, "value_heads": 6, "key_dim": 8, "value_dim": 16, "conv": 4,
        "output_norm": RMS,
    }  # fmt: skip
    attention = {"kind": "gqa", "heads": 4, "kv_heads": 2, "head_dim": 16, "qk_norm": OFFSET, "output_gate": True}
    dense = {"kind": "dense", "width": 48, "gated": True, "activation": "silu"}
    return ModelSpec.model_validate(
        {
            "name": "small-qwen",
            "hidden": 32,
            "vocab": 40,
            "max_position": 64,
            "embedding": {"tied": False},
            "layers": [
                {"repeat": 1, "pattern": [{"mixer": mixer, "feed_forward": dense, "norm": OFFSET}]}
                for mixer in (delta, attention)
            ],
            "final_norm": OFFSET,
            "quantization": quantization,
        }
    )


def by_group(groups: int, *parts: np.ndarray) -> np.ndarray:
    """Of every group its share of every part, one part after the other."""
    shares = [part.reshape(groups, -1, *part.shape[1:]) for part in parts]
    return np.concatenate(shares, axis=1).reshape(-1, *parts[0].shape[1:])


def qwen_checkpoint(source: WeightSource, *, split: bool) -> dict[str, np.ndarray]:
    """`split`: as Qwen3.5 and 3.6 have their tensors; else as Qwen3-Next has them."""

    def delta(name: str) -> np.ndarray:
        return source.load(f"layers.0.attn.{name}")

    def attention(name: str) -> np.ndarray:
        return source.load(f"layers.1.attn.{name}")

    linear, full = "model.layers.0.linear_attn", "model.layers.1.self_attn"
    tensors = {
        "model.embed_tokens.weight": source.load("embed"),
        "lm_head.weight": source.load("head"),
        "model.norm.weight": source.load("final_norm.weight"),
        f"{linear}.conv1d.weight": np.concatenate([delta("q_conv"), delta("k_conv"), delta("v_conv")])[:, None],
        f"{linear}.A_log": delta("decay_scale"),
        f"{linear}.dt_bias": delta("decay_bias"),
        f"{linear}.norm.weight": delta("output_norm"),
        f"{linear}.out_proj.weight": delta("o"),
        f"{full}.q_proj.weight": by_group(4, attention("q"), attention("gate")),
        f"{full}.k_proj.weight": attention("k"),
        f"{full}.v_proj.weight": attention("v"),
        f"{full}.o_proj.weight": attention("o"),
        f"{full}.q_norm.weight": attention("q_norm"),
        f"{full}.k_norm.weight": attention("k_norm"),
        "mtp.layers.0.input_layernorm.weight": np.ones(32, np.float32),
    }
    if split:
        tensors |= {
            f"{linear}.in_proj_qkv.weight": np.concatenate([delta("q"), delta("k"), delta("v")]),
            f"{linear}.in_proj_z.weight": delta("gate"),
            f"{linear}.in_proj_a.weight": delta("decay"),
            f"{linear}.in_proj_b.weight": delta("beta"),
        }
    else:
        tensors |= {
            f"{linear}.in_proj_qkvz.weight": by_group(2, delta("q"), delta("k"), delta("v"), delta("gate")),
            f"{linear}.in_proj_ba.weight": by_group(2, delta("beta"), delta("decay")),
        }
    for layer in (0, 1):
        norms = {"pre_mixer_norm": "input_layernorm", "pre_feed_forward_norm": "post_attention_layernorm"}
        for name, stored in norms.items():
            tensors[f"model.layers.{layer}.{stored}.weight"] = source.load(f"layers.{layer}.{name}.weight")
        for name in ("gate", "up", "down"):
            tensors[f"model.layers.{layer}.mlp.{name}_proj.weight"] = source.load(f"layers.{layer}.mlp.{name}")
    return tensors


def assert_same(found: WeightSource, expected: WeightSource) -> None:
    assert set(found.names()) == set(expected.names())
    for name in expected.names():
        np.testing.assert_array_equal(found.load(name), expected.load(name), err_msg=name)
        rows = (1, expected.shape(name)[0] - 1)
        np.testing.assert_array_equal(found.load(name, rows), expected.load(name, rows), err_msg=name)


# ---- Qwen


@pytest.mark.parametrize("split", [True, False], ids=["Qwen3.5", "Qwen3-Next"])
def test_weights_of_qwen_that_lie_together_come_apart(split: bool, tmp_path: Path) -> None:
    spec = qwen_spec()
    source = RandomWeights(spec, 0)
    save_file(qwen_checkpoint(source, split=split), tmp_path / "model.safetensors")
    notes: list[str] = []
    assert_same(open_weights(tmp_path, spec, notes.append), source)
    assert notes == []


def test_the_text_model_of_a_multimodal_qwen_is_read_and_its_tower_is_not(tmp_path: Path) -> None:
    spec = qwen_spec()
    source = RandomWeights(spec, 0)
    bare = qwen_checkpoint(source, split=True)
    tensors = {name.replace("model.", "model.language_model.", 1): values for name, values in bare.items()}
    tensors["model.visual.patch_embed.proj.weight"] = np.ones((2, 2), np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    assert_same(open_weights(tmp_path, spec), source)


def test_codes_and_scales_of_a_tensor_come_apart_by_head(tmp_path: Path) -> None:
    """Stored in fp8 with a scale an output, so that a scale that strays from its codes shows."""
    spec = qwen_spec(attention="fp8")
    source = RandomWeights(spec, 0)
    tensors = qwen_checkpoint(source, split=True)
    for tensor, weights, groups in (
        ("model.layers.0.linear_attn.in_proj_qkv", ("layers.0.attn.q", "layers.0.attn.k", "layers.0.attn.v"), 1),
        ("model.layers.0.linear_attn.in_proj_z", ("layers.0.attn.gate",), 1),
        ("model.layers.0.linear_attn.out_proj", ("layers.0.attn.o",), 1),
        ("model.layers.1.self_attn.q_proj", ("layers.1.attn.q", "layers.1.attn.gate"), 4),
        *((f"model.layers.1.self_attn.{part}_proj", (f"layers.1.attn.{part}",), 1) for part in "kvo"),
    ):
        numbers = [source.numbers(weight, (0, source.shape(weight)[0])) for weight in weights]
        codes, scales = ([part[section] for part in numbers] for section in ("codes", "scale"))
        tensors[f"{tensor}.weight"] = by_group(groups, *codes).view(float8_e4m3fn)
        tensors[f"{tensor}.weight_scale"] = by_group(groups, *scales).view(np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    found = open_weights(tmp_path, spec)
    assert_same(found, source)
    for name in ("layers.1.attn.gate", "layers.0.attn.v"):
        for section, bits in source.numbers(name, (3, 30)).items():
            np.testing.assert_array_equal(found.numbers(name, (3, 30))[section], bits, err_msg=f"{name} {section}")


def test_rows_of_one_part_of_every_group() -> None:
    assert part_of_every_group(2, [2, 1], 0).tolist() == [0, 1, 3, 4]
    assert part_of_every_group(2, [2, 1], 1).tolist() == [2, 5]


def test_selected_rows_are_read_as_an_array_and_in_slices() -> None:
    values = np.arange(12, dtype=np.float32).reshape(6, 2)
    selected = SelectedRows(values, np.array([5, 1, 3]))
    assert selected.shape == (3, 2)
    np.testing.assert_array_equal(np.asarray(selected), values[[5, 1, 3]])
    np.testing.assert_array_equal(selected[1:], values[[1, 3]])


def test_parts_that_do_not_divide_into_their_groups_are_refused_with_the_sizes() -> None:
    stored = Stored(("q", "gate"), by="heads")
    with pytest.raises(ValueError, match=r"6 \+ 6 outputs do not divide into 4 groups"):
        list(stored.weights(np.zeros((12, 3)), {"q": (6, 3), "gate": (6, 3)}, groups=4))


# ---- Kimi


def test_a_checkpoint_of_kimi_k3_is_read_exactly_and_what_it_has_too_much_is_said(tmp_path: Path) -> None:
    spec = kimi_spec()
    source = RandomWeights(spec, 0)
    save_file(kimi_checkpoint(source), tmp_path / "model.safetensors")
    notes: list[str] = []
    found = open_weights(tmp_path, spec, notes.append)
    assert notes == [
        f"attn.decay_scale: {3 + LONGER} numbers are stored, of which the first 3 are read, in 2 layers",
    ]
    assert {name: found.shape(name) for name in found.names()} == expected_shapes(spec)
    for name in source.names():
        values = source.load(name)
        if found.format(name) is None and not name.endswith(FLOAT32):
            values = values.astype(bfloat16).astype(np.float32)
        np.testing.assert_array_equal(found.load(name), values, err_msg=name)


def test_experts_of_kimi_k3_keep_their_codes_and_scales(tmp_path: Path) -> None:
    spec = kimi_spec()
    source = RandomWeights(spec, 0)
    save_file(kimi_checkpoint(source), tmp_path / "model.safetensors")
    found = open_weights(tmp_path, spec)
    formats = {name: found.format(name) for name in found.names() if found.format(name) is not None}
    assert len(formats) == 2 * 6 * 3
    assert set(formats.values()) == {"mxfp4"}
    for name in formats:
        for section, bits in source.numbers(name, (5, 40)).items():
            np.testing.assert_array_equal(found.numbers(name, (5, 40))[section], bits, err_msg=f"{name} {section}")


def test_decays_of_fewer_heads_than_the_model_has_are_refused(tmp_path: Path) -> None:
    spec = kimi_spec()
    tensors = kimi_checkpoint(RandomWeights(spec, 0))
    name = "language_model.model.layers.0.self_attn.A_log"
    tensors[name] = tensors[name][:2]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"layers\.0\.attn\.decay_scale: expected \[3\], found \[2\]"):
        open_weights(tmp_path, spec)


def test_no_other_weight_may_be_longer_than_the_model_has_it(tmp_path: Path) -> None:
    spec = kimi_spec()
    tensors = kimi_checkpoint(RandomWeights(spec, 0))
    name = "language_model.model.layers.0.self_attn.dt_bias"
    tensors[name] = np.append(tensors[name], np.ones(8, np.float32))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"layers\.0\.attn\.decay_bias: expected \[96\], found \[104\]"):
        open_weights(tmp_path, spec)
