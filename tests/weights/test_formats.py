"""Formats: codes and scales lie where the sections say, and come back bit for bit from any split over devices."""

import numpy as np
import pytest
from ml_dtypes import float4_e2m1fn, float8_e8m0fnu

from schedc.errors import UserError
from schedc.spec.model import ModelSpec
from schedc.weights.formats import FORMATS, cut_at
from schedc.weights.formats.format import Section
from schedc.weights.formats.mxfp4 import power
from schedc.weights.formats.rounding import from_e2m1
from schedc.weights.forms.panel_matrix import unpack_numbers
from schedc.weights.layout import Columns, Inputs, PanelMatrix
from schedc.weights.pack import pack_arrays, unpack
from schedc.weights.random_weights import RandomWeights
from schedc.weights.rounded import Rounded
from schedc.weights.source import stored_numbers
from schedc.weights.words import to_bits

QUANTISED = [name for name, known in FORMATS.items() if not known.exact]


class Stored:
    """One projection, `head`, with random bits for codes and scales: not what rounding would give."""

    def __init__(self, stored: str, outputs: int, inputs: int) -> None:
        random = np.random.default_rng(0)
        self.stored, self.outputs = stored, outputs
        self.all = {
            section.name: _bits(random, section, (outputs, section.numbers(inputs)))
            for section in FORMATS[stored].sections
        }

    def identity(self) -> str:
        return "stored"

    def names(self) -> tuple[str, ...]:
        return ("head",)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.all["codes"].shape

    def format(self, name: str) -> str:
        return self.stored

    def numbers(self, name: str, rows: tuple[int, int]) -> dict[str, np.ndarray]:
        return {section: found[rows[0] : rows[1]] for section, found in self.all.items()}

    def load(self, name: str, rows: tuple[int, int] | None = None) -> np.ndarray:
        return FORMATS[self.stored].decode(self.numbers(name, rows or (0, self.outputs)))


def _bits(random: np.random.Generator, section: Section, shape: tuple[int, int]) -> np.ndarray:
    """Any bits for codes and small scales, those of finite numbers for large ones."""
    if section.bits < 16:
        limits = (0, 1 << section.bits) if section.name == "codes" else (1, 126)
        return random.integers(*limits, shape, np.uint8)
    values = random.standard_normal(shape).astype(np.float32)
    return to_bits(values, "bf16" if section.bits == 16 else "f32")


def matrix(stored: str, k: int, columns: tuple[Columns, ...], inputs: tuple[Inputs, ...] = ()) -> PanelMatrix:
    return PanelMatrix("m", stored, (), k, -(-sum(c.width for c in columns) // 128), 1, columns, inputs)


def assert_bits(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for section, bits in expected.items():
        assert found[section].dtype == bits.dtype
        np.testing.assert_array_equal(found[section], bits, err_msg=section)


@pytest.mark.parametrize(
    ("stored", "rows"),
    [
        ("bf16", 2048),
        ("f32", 4096),
        ("int8", 1024 + 8),
        ("fp8", 1024 + 8),
        ("fp8_block128", 1024 + 32),
        ("int4_g32", 512 + 64),
        ("int4_g64", 512 + 32),
        ("int4_g128", 512 + 16),
        ("mxfp4", 512 + 32),
        ("nvfp4", 512 + 64 + 8),
    ],
)
def test_a_panel_of_4096_inputs_takes_the_rows_of_its_codes_and_then_of_its_scales(stored: str, rows: int) -> None:
    assert FORMATS[stored].panel_rows(4096) == rows


def test_four_bit_codes_go_down_a_word_from_its_low_bits() -> None:
    codes = (np.arange(16) % 16).astype(np.uint8)[None]
    words = FORMATS["mxfp4"].to_words({"codes": codes, "scale": np.array([[130]], np.uint8)}, 16)
    assert words[0, :2].view(np.uint32).tolist() == [0x76543210, 0xFEDCBA98]
    assert words[0, 8] == 130  # the scales begin behind the 8 word rows of the codes


@pytest.mark.parametrize("stored", FORMATS)
@pytest.mark.parametrize("inputs", [7, 200, 512])
def test_packing_and_unpacking_restores_every_bit(stored: str, inputs: int) -> None:
    source = Stored(stored, 200, inputs)
    layout = matrix(stored, inputs, (Columns("head", 0, 150, 256), Columns("head", 150, 50)))
    words = pack_arrays([layout], source)["m"]
    if not FORMATS[stored].exact:
        assert_bits(unpack_numbers(layout, words)["head"], source.all)
    np.testing.assert_array_equal(unpack(layout, words)["head"], source.load("head"))


def cut_group(stored: str) -> int:
    return min(known.group for known in FORMATS.values() if known.name == stored or stored in known.finer_than)


@pytest.mark.parametrize("stored", QUANTISED)
def test_columns_are_cut_anywhere_without_loss_also_inside_a_block(stored: str) -> None:
    source = Stored(stored, 3 * 192, 256)
    for device in range(3):
        layout = matrix(stored, 256, (Columns("head", 192 * device, 192),))
        found = unpack_numbers(layout, pack_arrays([layout], source)["m"])["head"]
        rows = 192 * device, 192 * (device + 1)
        assert_bits({section: bits[rows[0] :] for section, bits in found.items()}, source.numbers("head", rows))


@pytest.mark.parametrize("stored", [stored for stored in QUANTISED if cut_group(stored) <= 64])
def test_inputs_are_cut_at_192_by_a_finer_format_with_the_same_weights(stored: str) -> None:
    source, finer = Stored(stored, 128, 3 * 192), cut_at(stored, [192], "m")
    for device in range(3):
        layout = matrix(finer, 192, (Columns("head", 0, 128),), (Inputs(192 * device, 192),))
        weights = unpack(layout, pack_arrays([layout], source)["m"])["head"]
        held = slice(192 * device, 192 * (device + 1))
        np.testing.assert_array_equal(weights[:, held], source.load("head")[:, held])


@pytest.mark.parametrize(
    ("stored", "cut", "finer"),
    [
        ("fp8_block128", 192, "fp8_block64"),
        ("fp8_block128", 256, "fp8_block128"),
        ("int4_g128", 192, "int4_g64"),
        ("int4_g128", 96, "int4_g32"),
        ("nvfp4", 176, "nvfp4"),
        ("int8", 7, "int8"),
    ],
)
def test_the_coarsest_groups_that_a_cut_leaves_whole_are_taken(stored: str, cut: int, finer: str) -> None:
    assert cut_at(stored, [cut, 2 * cut], "m") == finer


def test_a_cut_that_no_groups_leave_whole_is_refused_with_the_numbers() -> None:
    message = (
        "w_down: fp8_block128 has groups of 64 inputs at the least, and the cut at input 96 divides one; use as many"
    )
    with pytest.raises(UserError, match=message):
        cut_at("fp8_block128", [192, 96], "w_down")
    with pytest.raises(ValueError, match="m: mxfp4 has groups of 32 inputs, which a block of 40 from 32 on divides"):
        matrix("mxfp4", 40, (Columns("head", 0, 128),), (Inputs(32, 40),))


@pytest.mark.parametrize("stored", QUANTISED)
def test_rounding_is_to_the_nearest_and_keeps_what_is_exact(stored: str) -> None:
    known = FORMATS[stored]
    values = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32)
    once = known.decode(known.nearest(values))
    steps = {"int8": 1 / 254, "fp8": 1 / 28, "int4": 1 / 13, "mxfp4": 1 / 4, "nvfp4": 1 / 6}
    step = next(step for name, step in steps.items() if stored.startswith(name))
    assert np.abs(once - values).max() <= step * np.abs(values).max()
    assert (np.sign(once) * np.sign(values) >= 0).all()
    assert not known.decode(known.nearest(np.zeros((2, 256), np.float32))).any()


def test_the_small_types_are_those_of_ml_dtypes() -> None:
    codes = np.arange(16, dtype=np.uint8)
    np.testing.assert_array_equal(from_e2m1(codes), codes.view(float4_e2m1fn).astype(np.float32))
    scales = np.arange(255, dtype=np.uint8)  # 255 is NaN
    np.testing.assert_array_equal(power(scales), scales.view(float8_e8m0fnu).astype(np.float32))


def test_another_format_than_the_stored_one_is_refused_and_nothing_is_rounded_unasked() -> None:
    with pytest.raises(UserError, match="head: stored as int8, the kernel wants mxfp4; compile for int8"):
        stored_numbers(Stored("int8", 8, 32), "head", "mxfp4", (0, 8))
    floats = Stored("f32", 8, 32)
    floats.format = lambda name: None  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(UserError, match="head: the weights are floating-point numbers, the kernel wants mxfp4; pack"):
        stored_numbers(floats, "head", "mxfp4", (0, 8))


def test_weights_are_rounded_where_it_is_asked_for_and_alike_in_any_pieces(spec: ModelSpec) -> None:
    quantised = spec.model_copy(update={"quantization": spec.quantization.model_copy(update={"weights": "nvfp4"})})
    floats = RandomWeights(spec, 0)
    rounded = Rounded(floats, quantised)
    assert rounded.format("layers.0.attn.q") == "nvfp4"
    assert rounded.format("embed") is None
    assert rounded.identity() != floats.identity()
    whole = rounded.numbers("layers.0.attn.q", (0, 32))
    assert_bits({name: bits[8:20] for name, bits in whole.items()}, rounded.numbers("layers.0.attn.q", (8, 20)))
    np.testing.assert_array_equal(rounded.load("layers.0.attn.q"), FORMATS["nvfp4"].decode(whole))
    np.testing.assert_array_equal(rounded.load("layers.0.attn.q_bias"), floats.load("layers.0.attn.q_bias"))
