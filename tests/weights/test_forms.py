"""Each packed form, word by word where the order is the point, and back without loss."""

from json import dumps, loads

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from schedc.spec.model import ModelSpec
from schedc.spec.rope import Rope
from schedc.weights.layout import (
    Columns,
    HeadMatrices,
    HeadOutputs,
    Inputs,
    Layout,
    Members,
    PanelMatrix,
    RopeTable,
    RowTable,
    VectorItem,
    Vectors,
    from_dict,
    layouts_hash,
    on_device,
    to_dict,
)
from schedc.weights.pack import pack_arrays, unpack
from schedc.weights.random_weights import RandomWeights


class Given:
    """Weights that are given as arrays."""

    def __init__(self, **weights: np.ndarray) -> None:
        self._weights = {name.replace("__", "."): np.asarray(values, np.float32) for name, values in weights.items()}

    def identity(self) -> str:
        return "given"

    def names(self) -> tuple[str, ...]:
        return tuple(self._weights)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._weights[name].shape

    def load(self, name: str, rows: tuple[int, int] | None = None) -> np.ndarray:
        values = self._weights[name]
        return values if rows is None else values[rows[0] : rows[1]]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    return values.astype(bfloat16).astype(np.float32) if dtype == "bf16" else values


def halves(word: int) -> tuple[float, float]:
    """The two bf16 numbers of a word, low half first."""
    bits = np.array([word], np.int32).view(np.uint16).view(bfloat16)
    return float(bits[0]), float(bits[1])


def as_float(word: int) -> float:
    return float(np.array([word], np.int32).view(np.float32)[0])


def test_a_bf16_panel_word_holds_two_inputs_of_one_output() -> None:
    w = np.arange(20 * 6).reshape(20, 6)  # 20 outputs, 6 inputs
    layout = PanelMatrix("m", "bf16", (), 6, 1, 1, (Columns("head", 0, 20),))
    words = pack_arrays([layout], Given(head=w))["m"]
    assert words.shape == (8, 128)  # 6 inputs are 3 word rows, padded to 8
    assert halves(words[1, 7]) == (w[7, 2], w[7, 3])
    assert not words[3:].any()
    assert not words[:, 20:].any()


def test_an_f32_panel_word_holds_one_input_of_one_output() -> None:
    w = np.arange(20 * 6).reshape(20, 6)
    words = pack_arrays([PanelMatrix("m", "f32", (), 6, 1, 1, (Columns("head", 0, 20),))], Given(head=w))["m"]
    assert as_float(words[5, 7]) == w[7, 5]


def test_panels_go_by_layer_then_tile_then_panel() -> None:
    gate, up = np.zeros((2, 300, 16)), np.zeros((2, 300, 16))
    for layer in range(2):
        gate[layer] = (1 + layer) * np.ones((300, 16))
        up[layer] = (10 + layer) * np.ones((300, 16))
    source = Given(
        layers__0__mlp__gate=gate[0], layers__1__mlp__gate=gate[1], layers__0__mlp__up=up[0], layers__1__mlp__up=up[1]
    )
    columns = tuple(
        Columns(weight, start, 128) for start in (0, 128, 256) for weight in ("mlp.gate", "mlp.up")
    )  # the last blocks reach past column 300
    words = pack_arrays([PanelMatrix("m", "bf16", (0, 1), 16, 3, 2, columns)], source)["m"]
    panels = words.reshape(2, 3, 2, 8, 128)
    firsts = [[[halves(panels[layer, tile, p, 0, 0])[0] for p in range(2)] for tile in range(3)] for layer in range(2)]
    assert firsts == [[[1, 10]] * 3, [[2, 11]] * 3]
    assert halves(panels[0, 2, 0, 0, 43]) == (1, 1)
    assert halves(panels[0, 2, 0, 0, 44]) == (0, 0)  # column 300


def test_blocks_pad_heads_to_lanes_on_either_side_of_the_matrix() -> None:
    w = np.arange(1, 65).reshape(4, 16)
    columns = (Columns("head", 0, 2, 64), Columns("head", 2, 2, 64))
    words = pack_arrays([PanelMatrix("m", "f32", (), 16, 1, 1, columns)], Given(head=w))["m"]
    assert [as_float(words[0, lane]) for lane in (0, 1, 2, 64, 65)] == [1, 17, 0, 33, 49]

    inputs = (Inputs(0, 0, 8), Inputs(0, 8, 16), Inputs(8, 8, 16))  # 8 rows of zeros lead
    words = pack_arrays([PanelMatrix("m", "f32", (), 40, 1, 1, (Columns("head", 0, 4),), inputs)], Given(head=w))["m"]
    assert [as_float(words[row, 0]) for row in (0, 8, 15, 16, 24, 31, 32)] == [0, 1, 8, 0, 9, 16, 0]


def test_members_lie_one_after_the_other_and_each_device_has_its_own() -> None:
    """Three experts on two devices: the second has one, and zeros where another would be."""
    weights = {f"layers__{layer}__mlp__experts__{e}__up": [[10 * layer + e]] for layer in (0, 1) for e in range(3)}
    biases = {f"{name}_bias": [values[0][0] + 0.5] for name, values in weights.items()}
    members = (Members(0, 2, of=3, step=2, ring=2),)
    columns = (Columns("mlp.experts.*.up", 0, 1),)
    matrix = PanelMatrix("m", "f32", (0, 1), 1, 1, 1, columns, members=members)
    vectors = Vectors("v", (0, 1), (VectorItem("mlp.experts.*.up_bias", 1),), members)
    assert [from_dict(loads(dumps(to_dict(layout)))) for layout in (matrix, vectors)] == [matrix, vectors]
    source = Given(**weights, **biases)
    for device, expected in enumerate([[0, 1, 10, 11], [2, 0, 12, 0]]):
        for layout, more in ((on_device(matrix, device), 0.0), (on_device(vectors, device), 0.5)):
            words = pack_arrays([layout], source)[layout.name]
            assert words.shape == (4 * 8, 128)
            found = [as_float(words[8 * place, 0]) for place in range(4)]
            assert found == [e + more if e or (device == 0 and place == 0) else 0 for place, e in enumerate(expected)]
            assert {name: values.item() for name, values in unpack(layout, words).items()} == {
                name: source.load(name).item() for name in unpack(layout, words)
            }


def test_a_head_matrix_is_its_outputs_transposed_and_each_device_has_its_own_heads() -> None:
    """Three heads of two keys and one value, of three inputs, over two devices: the second has one and zeros."""
    w = np.arange(1, 28).reshape(9, 3)
    blocks = (HeadOutputs("attn.kv_b", 2, 0, 2, 3, step=6, ring=2),)
    layout = HeadMatrices("uk", "f32", (4,), 2, 3, 1, 2, blocks)
    assert from_dict(loads(dumps(to_dict(layout)))) == layout
    source = Given(layers__4__attn__kv_b=w)
    for device, heads in enumerate([(w[0:2], w[3:5]), (w[6:8], np.zeros((2, 3)))]):
        own = on_device(layout, device)
        words = pack_arrays([own], source)["uk"]
        assert words.shape == (2 * 8, 128)
        found = words.view(np.float32).reshape(2, 8, 128)
        assert [matrix[:2, :3].tolist() for matrix in found] == [head.tolist() for head in heads]
        assert not found[:, 2:].any()
        back = unpack(own, words)["layers.4.attn.kv_b"]
        start = 6 * device
        assert back[start : start + 2].tolist() == heads[0].tolist()
        assert back[start + 3 : start + 5].tolist() == heads[1].tolist()


def test_a_bf16_table_row_keeps_far_panels_in_the_high_halves() -> None:
    table = np.arange(2 * 320).reshape(2, 320) % 256  # 3 panels, the last half full; exact in bf16
    words = pack_arrays([RowTable("t", "bf16", 2, 320)], Given(embed=table))["t"]
    assert words.shape == (4, 128)
    assert halves(words[2, 5]) == (table[1, 5], table[1, 256 + 5])
    assert halves(words[3, 5]) == (table[1, 128 + 5], 0)
    assert halves(words[2, 64]) == (table[1, 64], 0)


def test_an_f32_table_row_is_its_panels() -> None:
    table = np.arange(2 * 320).reshape(2, 320)
    words = pack_arrays([RowTable("t", "f32", 2, 320)], Given(embed=table))["t"]
    assert words.shape == (6, 128)
    assert as_float(words[3 + 2, 5]) == table[1, 256 + 5]


def test_every_vector_begins_at_a_multiple_of_eight_rows() -> None:
    layout = Vectors(
        "v",
        (0, 1),
        (
            VectorItem("n.weight", 200, add=1.0),
            VectorItem("bias", 6, block=3, block_lanes=64),
            VectorItem("q", 4, repeat=3, block=4, block_lanes=64),
        ),
    )
    assert (layout.offsets, layout.layer_rows, layout.rows) == ((0, 8, 16), 24, 48)
    weights = {}
    for layer in range(2):
        weights |= {
            f"layers__{layer}__n__weight": np.full(200, layer),
            f"layers__{layer}__bias": np.arange(1, 7),
            f"layers__{layer}__q": [1, 2, 3, 4],
        }
    rows = pack_arrays([layout], Given(**weights))["v"].view(np.float32)[24:]
    assert rows[0, 0] == rows[1, 71] == 2
    assert rows[1, 72] == 0
    assert rows[8, [0, 2, 3, 64, 66, 67]].tolist() == [1, 3, 0, 4, 6, 0]
    assert rows[16:18].reshape(-1)[[0, 3, 4, 64, 67, 128, 131, 132]].tolist() == [1, 4, 0, 1, 4, 1, 4, 0]
    assert not rows[18:].any()


def test_the_rope_table_turns_the_halves_of_a_head_and_lets_the_rest_pass() -> None:
    rope = Rope(theta=100.0, rotary_dim=6)
    words = pack_arrays([RopeTable("r", 20, 6, 256, rope)], Given())["r"].view(np.float32)
    assert words.shape == (20 * 4, 128)
    cos, sin = words[13 * 4], words[13 * 4 + 1]
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    swapped = x.copy()
    swapped[:3], swapped[3:6] = x[3:6], x[:3]
    y = x * cos + swapped * sin
    for pair, frequency in enumerate(100.0 ** (-np.arange(3) / 3)):
        turned = (x[pair] + 1j * x[pair + 3]) * np.exp(1j * 13 * frequency)
        assert y[pair] == pytest.approx(turned.real, abs=1e-6)
        assert y[pair + 3] == pytest.approx(turned.imag, abs=1e-6)
    assert (y[6:] == x[6:]).all()
    assert (words[13 * 4 + 2] == 1).all()
    assert not words[13 * 4 + 3].any()


def model_layouts(spec: ModelSpec, dtype: str) -> list[Layout]:
    mixer = spec.layers[0].pattern[0].mixer
    layers = tuple(range(spec.num_layers))
    qkv = (Columns("attn.q", 0, 32), Columns("attn.k", 0, 16, 128), Columns("attn.v", 0, 16))
    gated = tuple(Columns(weight, start, 128) for start in (0, 128) for weight in ("mlp.gate", "mlp.up"))
    return [
        RowTable("embed", dtype, 300, 40),
        PanelMatrix("qkv", dtype, layers, 40, 1, 2, qkv),
        PanelMatrix("o", dtype, layers, 64, 1, 1, (Columns("attn.o", 0, 40),), (Inputs(0, 16, 32), Inputs(16, 16, 32))),
        PanelMatrix("gate_up", dtype, layers, 40, 2, 2, gated),
        PanelMatrix("down", dtype, layers, 200, 1, 1, (Columns("mlp.down", 0, 40),)),
        PanelMatrix("head", dtype, (), 40, 2, 2, (Columns("embed", 0, 300),)),
        Vectors("norms", layers, (VectorItem("pre_mixer_norm.weight", 40), VectorItem("attn.q_bias", 32, 1, 8, 128))),
        Vectors("final", (), (VectorItem("final_norm.weight", 40),)),
        RopeTable("rope", 64, 4, 128, mixer.rope),
    ]


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_unpacking_gives_the_rounded_weights_exactly(spec: ModelSpec, dtype: str) -> None:
    source = RandomWeights(spec, seed=4)
    layouts = model_layouts(spec, dtype)
    for layout, words in zip(layouts, pack_arrays(layouts, source).values(), strict=True):
        assert words.dtype == np.int32
        assert words.shape == (layout.rows, 128)
        for name, values in unpack(layout, words).items():
            if name in source.names():
                kept = source.load(name) if isinstance(layout, Vectors) else rounded(source.load(name), dtype)
                np.testing.assert_array_equal(values[: len(kept)], kept, err_msg=name)
                assert not values[len(kept) :].any()


def test_layouts_survive_json_and_equal_ones_hash_equal(spec: ModelSpec) -> None:
    layouts = model_layouts(spec, "bf16")
    again = [from_dict(loads(dumps(to_dict(layout)))) for layout in layouts]
    assert again == layouts
    assert layouts_hash(again) == layouts_hash(layouts)
    assert layouts_hash(model_layouts(spec, "f32")) != layouts_hash(layouts)


@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(["bf16", "f32"]),
    k=st.integers(1, 50),
    counts=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    pads=st.lists(st.integers(0, 200), min_size=4, max_size=4),
    tile_panels=st.integers(1, 3),
)
def test_any_split_into_columns_and_tiles_is_undone(dtype, k, counts, pads, tile_panels) -> None:
    w = np.random.default_rng(0).standard_normal((sum(counts), k)).astype(np.float32)
    starts = np.cumsum([0, *counts])
    columns = tuple(Columns("head", int(starts[i]), count, pads[i]) for i, count in enumerate(counts))
    tiles = -(-sum(block.width for block in columns) // (128 * tile_panels))
    layout = PanelMatrix("m", dtype, (), k, tiles, tile_panels, columns)
    words = pack_arrays([layout], Given(head=w))["m"]
    np.testing.assert_array_equal(unpack(layout, words)["head"], rounded(w, dtype))


def test_columns_that_do_not_fit_the_tiles_are_refused() -> None:
    with pytest.raises(ValueError, match="m: columns need 129 of 128 columns"):
        PanelMatrix("m", "bf16", (), 8, 1, 1, (Columns("head", 0, 129),))
