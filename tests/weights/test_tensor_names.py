"""Tensors of a family's checkpoints become weights by name; what lies together in one tensor comes apart unread."""

import numpy as np
import pytest

from schedc.weights.tensor_names import NameTable, Stored, best_table, name_tables

TABLES = {table.name: table for table in name_tables()}
PRE = dict.fromkeys(range(4), "pre")


def parts(table: str, tensor: str) -> tuple[str, ...] | None:
    stored = TABLES[table].find(tensor, PRE)
    return None if stored is None else stored.parts


def mapped(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("table", "tensor", "weight"),
    [
        ("dense", "model.layers.3.self_attn.q_proj.weight", "layers.3.attn.q"),
        ("dense", "language_model.model.layers.3.mlp.up_proj.weight", "layers.3.mlp.up"),
        ("dense", "model.language_model.embed_tokens.weight", "embed"),
        ("dense", "language_model.lm_head.weight", "head"),
        ("qwen3_moe", "model.layers.1.mlp.experts.12.down_proj.weight", "layers.1.mlp.experts.12.down"),
        ("deepseek", "model.layers.1.mlp.gate.e_score_correction_bias", "layers.1.mlp.selection_bias"),
        ("deepseek", "model.layers.1.self_attn.kv_a_proj_with_mqa.weight", "layers.1.attn.kv_a"),
        ("mixtral", "model.layers.1.block_sparse_moe.experts.7.w2.weight", "layers.1.mlp.experts.7.down"),
        ("muse_spark", "model.layers.1.post_feedforward_residual_gate.gate", "layers.1.feed_forward_residual.gate"),
    ],
)
def test_a_tensor_has_the_name_of_its_family_s_table(table: str, tensor: str, weight: str) -> None:
    assert parts(table, tensor) == (weight,)


def test_a_tensor_that_no_table_of_the_family_has_is_unknown() -> None:
    assert parts("dense", "model.layers.1.mlp.experts.12.down_proj.weight") is None
    assert parts("deepseek", "model.layers.x.mlp.up_proj.weight") is None


def test_layers_behind_the_last_one_are_ignored_where_they_predict_further_tokens() -> None:
    tensor = "model.layers.4.eh_proj.weight"
    assert TABLES["deepseek"].ignores(tensor, layers=4)
    assert not TABLES["deepseek"].ignores(tensor, layers=5)
    assert not TABLES["dense"].ignores(tensor, layers=4)


def test_other_towers_of_a_multimodal_model_are_ignored_by_name() -> None:
    assert TABLES["llama4"].ignores("vision_model.layernorm_pre.weight", layers=4)
    assert not TABLES["dense"].ignores("vision_model.layernorm_pre.weight", layers=4)


def test_stacked_experts_come_apart_without_being_copied() -> None:
    tensor = mapped((3, 4, 5))
    stored = Stored(("experts.{expert}.gate", "experts.{expert}.up"))
    shapes = {f"experts.{e}.{side}": (2, 5) for e in range(3) for side in ("gate", "up")}
    weights = dict(stored.weights(tensor, shapes))
    assert list(weights) == list(shapes)
    np.testing.assert_array_equal(weights["experts.1.up"], tensor[1, 2:])
    assert all(np.shares_memory(weight, tensor) for weight in weights.values())


def test_interleaved_outputs_of_a_tensor_stored_by_inputs_come_apart_without_being_copied() -> None:
    tensor = mapped((3, 5, 4))
    weights = dict(Stored(("{expert}.gate", "{expert}.up"), interleaved=True, inputs_first=True).weights(tensor, {}))
    np.testing.assert_array_equal(weights["2.up"], tensor[2, :, 1::2].T)
    assert weights["2.up"].shape == (2, 5)
    assert all(np.shares_memory(weight, tensor) for weight in weights.values())


def test_parts_that_do_not_make_up_their_tensor_are_refused_with_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"7 outputs, where q, k have 4 \+ 2"):
        list(Stored(("q", "k")).weights(mapped((7, 3)), {"q": (4, 3), "k": (2, 3)}))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_checkpoint_with_all_names_of_a_family_is_read_by_its_own_table(table: NameTable) -> None:
    tensors = [*table.model, *(f"model.layers.0.{name.replace('{expert}', '0')}" for name in table.layer)]
    assert best_table(tensors, PRE).name == table.name
