"""Quantised checkpoints: codes and scales are read as they are stored, and packed and restored bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from safetensors.numpy import save_file

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.checkpoints import with_quantised
from schedc.weights.checkpoints.quantised import QuantisedStack, QuantisedTensor
from schedc.weights.formats import FORMATS
from schedc.weights.forms.panel_matrix import unpack_numbers
from schedc.weights.head_order import for_kernel
from schedc.weights.layout import Columns, PanelMatrix
from schedc.weights.open import open_weights
from schedc.weights.pack import pack_arrays
from schedc.weights.random_weights import RandomWeights

OUTPUTS, INPUTS = 192, 256
RANDOM = np.random.default_rng(0)


def some(dtype, *shape: int) -> np.ndarray:
    """Numbers of any bits for codes, around one for floating-point scales."""
    dtype = np.dtype(dtype)
    if dtype.name in ("float32", "bfloat16", "float16"):
        return (1 + RANDOM.random(shape)).astype(dtype)
    return RANDOM.integers(0, 120, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def only(tensors: dict[str, np.ndarray]) -> tuple[str, QuantisedTensor]:
    ((name, found),) = with_quantised(tensors, "test").items()
    assert isinstance(found, QuantisedTensor)
    return name, found


def test_deepseek_blocks_give_every_output_the_scale_of_its_block() -> None:
    codes, scales = some(float8_e4m3fn, OUTPUTS, INPUTS), some(np.float32, 2, 2)
    name, found = only({"a.weight": codes, "a.weight_scale_inv": scales})
    assert (name, found.format, found.shape) == ("a.weight", "fp8_block128", (OUTPUTS, INPUTS))
    expected = codes.astype(np.float32) * np.kron(scales, np.ones((128, 128), np.float32))[:OUTPUTS]
    np.testing.assert_array_equal(found[100:180].values(), expected[100:180])


def test_gpt_oss_experts_are_one_by_one_with_gate_and_up_in_turn() -> None:
    blocks, scales = some(np.uint8, 3, 6, 2, 16), some(np.uint8, 3, 6, 2) | 1
    ((name, stack),) = with_quantised({"e.gate_up_proj_blocks": blocks, "e.gate_up_proj_scales": scales}, "t").items()
    assert name == "e.gate_up_proj"
    assert isinstance(stack, QuantisedStack)
    assert stack.shape == (3, 64, 6)  # as floating-point numbers it is [experts, in, out]
    up = list(stack)[2].T[1::2]
    codes = up.numbers()["codes"]
    assert up.shape == (3, 64)
    assert codes[1, :2].tolist() == [blocks[2, 3, 0, 0] & 15, blocks[2, 3, 0, 0] >> 4]
    assert codes[1, 32] == blocks[2, 3, 1, 0] & 15
    np.testing.assert_array_equal(up.numbers()["scale"], scales[2, 1::2])


def test_modelopt_nvfp4_has_two_levels_of_scales() -> None:
    packed, scales = some(np.uint8, OUTPUTS, INPUTS // 2), some(float8_e4m3fn, OUTPUTS, INPUTS // 16)
    tensors = {"a.weight": packed, "a.weight_scale": scales, "a.weight_scale_2": np.float32(0.25).reshape(())}
    name, found = only(tensors | {"a.input_scale": np.ones(1, np.float32)})
    assert (name, found.format, found.shape) == ("a.weight", "nvfp4", (OUTPUTS, INPUTS))
    first = FORMATS["mxfp4"].decode({"codes": packed[:1, :1] & 15, "scale": np.array([[127]], np.uint8)})[0, 0]
    assert found.values()[0, 0] == first * scales[0, 0].astype(np.float32) * np.float32(0.25)


def test_int4_words_hold_eight_codes_and_an_offset() -> None:
    values = RANDOM.integers(-8, 8, (OUTPUTS, INPUTS))
    words = sum((values[:, place::8] + 8).astype(np.uint32) << np.uint32(4 * place) for place in range(8))
    scales = some(bfloat16, OUTPUTS, INPUTS // 32)
    packed = {"a.weight_packed": words.view(np.int32), "a.weight_scale": scales}
    name, found = only(packed | {"a.weight_shape": np.array([OUTPUTS, INPUTS])})
    assert (name, found.format) == ("a.weight", "int4_g32")
    expected = values * np.repeat(scales.astype(np.float32), 32, axis=1)
    np.testing.assert_array_equal(found.values(), expected.astype(np.float32))


@pytest.mark.parametrize(("dtype", "stored"), [(np.int8, "int8"), (float8_e4m3fn, "fp8")])
@pytest.mark.parametrize("shape", [(), (1,), (OUTPUTS, 1)])
def test_a_code_a_byte_with_a_scale_of_the_tensor_or_of_each_channel(dtype, stored: str, shape) -> None:
    codes, scale = some(dtype, OUTPUTS, INPUTS), some(np.float32, *shape)
    _, found = only({"a.weight": codes, "a.weight_scale": scale})
    assert found.format == stored
    np.testing.assert_array_equal(found.values(), codes.astype(np.float32) * scale)


def test_compressed_fp4_tells_mxfp4_and_nvfp4_by_their_scales() -> None:
    packed = some(np.uint8, OUTPUTS, INPUTS // 2)
    _, mx = only({"a.weight_packed": packed, "a.weight_scale": some(np.uint8, OUTPUTS, INPUTS // 32) | 1})
    assert mx.format == "mxfp4"
    scales = some(float8_e4m3fn, OUTPUTS, INPUTS // 16)
    factor = np.array([8.0], np.float32)
    _, nv = only({"a.weight_packed": packed, "a.weight_scale": scales, "a.weight_global_scale": factor})
    assert nv.format == "nvfp4"
    assert (nv.numbers()["tensor"].view(np.float32) == 1 / 8).all()


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"a.weight": some(np.uint8, 4, 4)}, "test: a.weight holds uint8 numbers, and no scales for them are known"),
        (
            {"a.weight": some(float8_e4m3fn, 256, 256), "a.weight_scale_inv": some(np.float32, 4, 4)},
            r"a.weight: float8_e4m3fn\[256, 256\] with scales \[4, 4\]; blocks of 128×128 .* would have \[2, 2\]",
        ),
        (
            {"a.weight_packed": some(np.int32, 4, 6), "a.weight_scale": some(bfloat16, 4, 1)},
            r"a.weight_packed: int32\[4, 6\] .* expected 4-bit codes in groups of 32, 64 or 128",
        ),
        (
            {"a.weight_packed": some(np.int32, 4, 4), "a.weight_scale": np.full((4, 1), 1.001, np.float32)},
            "a.weight_scale: float32 scales that are no bf16 numbers; int4 here has bf16 scales",
        ),
        (
            {
                "a.weight_packed": some(np.int32, 4, 4),
                "a.weight_scale": some(bfloat16, 4, 1),
                "a.weight_zero_point": np.ones((4, 1), np.int32),
            },
            "a.weight_zero_point: codes with a zero point are not supported; quantise symmetrically",
        ),
        ({"e_blocks": some(np.uint8, 2, 4, 2, 8)}, r"e_blocks: blocks \[2, 4, 2, 8\] with no scales; expected"),
    ],
)
def test_what_is_stored_otherwise_is_refused_with_its_sizes(tensors: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(UserError, match=message):
        with_quantised(tensors, "test")


def test_scales_that_f32_has_no_normal_number_for_are_refused_where_codes_need_them() -> None:
    tensors = {"a.weight_packed": np.full((1, 32), 0x11, np.uint8), "a.weight_scale": np.array([[0, 127]], np.uint8)}
    with pytest.raises(UserError, match="1 scales of mxfp4 are 2"):
        only(tensors)[1].numbers()
    tensors["a.weight_packed"][0, :16] = 0
    assert only(tensors)[1].values()[0, :32].tolist() == [0.0] * 32


# ---- a whole checkpoint


def fp8_checkpoint(spec: ModelSpec) -> dict[str, np.ndarray]:
    """The tensors of a small llama whose projections are fp8 with a scale a channel."""
    source, tensors = RandomWeights(spec, 0), {}
    projections = {"attn": "self_attn", "mlp": "mlp"}
    norms = {"pre_mixer_norm": "input_layernorm", "pre_feed_forward_norm": "post_attention_layernorm"}
    for name in source.names():
        if not name.startswith("layers."):
            outer = {"embed": "model.embed_tokens.weight", "final_norm.weight": "model.norm.weight"}
            tensors[outer[name]] = source.load(name)
            continue
        _, layer, part, own = name.split(".")
        stem = f"model.layers.{layer}.{norms.get(part) or projections[part]}"
        if part in norms:
            tensors[f"{stem}.{own}"] = source.load(name)
        elif own.endswith("_bias"):
            tensors[f"{stem}.{own.removesuffix('_bias')}_proj.bias"] = source.load(name)
        else:
            numbers = source.numbers(name, (0, source.shape(name)[0]))
            tensors[f"{stem}.{own}_proj.weight"] = numbers["codes"].view(float8_e4m3fn)
            tensors[f"{stem}.{own}_proj.weight_scale"] = numbers["scale"].view(np.float32)
    return tensors


def test_a_quantised_checkpoint_is_opened_checked_and_packed_bit_for_bit(spec: ModelSpec, tmp_path: Path) -> None:
    spec = spec.model_copy(update={"quantization": spec.quantization.model_copy(update={"weights": "fp8"})})
    save_file(fp8_checkpoint(spec), tmp_path / "model.safetensors")
    opened, expected = open_weights(tmp_path, spec), RandomWeights(spec, 0)
    assert opened.format("layers.1.attn.q") == "fp8"
    assert opened.format("embed") is None
    columns = (Columns("attn.q", 0, 32), Columns("attn.k", 0, 16, 128))
    layout = PanelMatrix("qkv", "fp8", (0, 1), 40, 2, 1, columns)
    words = pack_arrays([layout], opened)["qkv"]
    for name, numbers in unpack_numbers(layout, words).items():
        for section, bits in expected.numbers(name, (0, expected.shape(name)[0])).items():
            np.testing.assert_array_equal(numbers[section], bits, err_msg=f"{name} {section}")
    # Where the kernel wants heads in another order, codes and scales move together.
    np.testing.assert_array_equal(
        FORMATS["fp8"].decode(for_kernel(opened, spec).numbers("layers.0.attn.q", (4, 12))),
        for_kernel(expected, spec).load("layers.0.attn.q", (4, 12)),
    )
