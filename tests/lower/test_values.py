"""What phases say that their results mean: names that the reference notes, every column of them on some device."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from schedc.compiler.noted import EXACT, ROUNDED, Copies, chosen, held, of_cache, seen
from schedc.compiler.recording import OfCache, Recorded, phases_of, recorded
from schedc.lower.graph import Grain, StepGraph, StepShape
from schedc.lower.step import StepLowering
from schedc.lower.values import KEPT, LOGITS, Piece, Value
from schedc.placement.rules import PlacementRules
from schedc.reference.notes import EACH
from schedc.reference.reference import Noted, Reference
from schedc.spec.model import ModelSpec
from schedc.weights.layout import Members
from schedc.weights.random_weights import RandomWeights
from tests.reference.moe_specs import FEATURES as EXPERTS
from tests.reference.recurrent_specs import FEATURES as RECURRENT
from tests.reference.small_specs import FEATURES, LATENT, latent_spec, small_spec

SPECS = {
    "heads of several sizes": FEATURES["two runs"],
    "norms of all heads": FEATURES["qk-norm over heads"],
    "wide heads with a gate": FEATURES["gated norm without weight"],
    "odd latents": LATENT["latent, odd sizes"],
    "latents with a gate": LATENT["latent, output gate"],
    "expanded latents": latent_spec({"cache": "expanded", "value_dim": 11}),
    "gated shared expert": EXPERTS["gated shared"],
    "weighed experts": EXPERTS["weighed input"],
    "experts in a latent space": EXPERTS["latent"],
    "kda": RECURRENT["kda"],
    "gated delta": RECURRENT["gated delta"],
    "block attention residuals": RECURRENT.get("blocks of two", FEATURES["gated residual"]),
}
ROWS = 3
MOVING = ("fetch", "meet", "settle", "finish", "_send", "send_", "join_queries", "prologue")
"""In the names of phases that make nothing of their own."""


def graph_of(spec: ModelSpec, devices: int, **shape: Any) -> StepGraph:
    lowering = StepLowering(spec, StepShape(ROWS, 32, devices=devices, **shape))
    return lowering.graph(Grain({stream.name: 1 for stream in lowering.streams()}, 32))


@cache
def noted_shapes(name: str) -> tuple[list[dict[str, tuple[int, ...]]], dict[str, tuple[int, ...]]]:
    """Of every layer and outside: name → shape without rows, with a first axis of members where it has some."""
    spec = SPECS[name]
    reference = Reference(spec, RandomWeights(spec, 0))
    given = reference._one_token([1] * ROWS, [4] * ROWS, reference.empty_cache(ROWS, 8))
    layers, outer = reference._with_notes.eval_shape(*given)[3]
    of_layers = [
        {name: without_rows(name, array.shape[1:]) for name, array in layers[at.run][at.place].items()}
        for at in spec.iter_layers()
    ]
    return of_layers, {name: without_rows(name, array.shape) for name, array in outer.items()}


def without_rows(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of [rows, one token, …], or [experts, rows, one token, …]."""
    assert shape[int(EACH in name) :][:2] == (ROWS, 1), (name, shape)
    return (shape[0], *shape[3:]) if EACH in name else (1, *shape[2:])


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("name", SPECS)
def test_every_value_is_noted_by_the_reference_and_all_of_it_is_somewhere(name: str, devices: int):
    layers, outer = noted_shapes(name)
    graph = graph_of(SPECS[name], devices)
    records = recorded(graph, {phase.name for _, phase in phases_of(graph)})
    assert len(records) > 12
    for one in records:
        if one.value in (KEPT, LOGITS):
            continue
        for notes in [layers[layer] for layer in one.layers] or [outer]:
            members, *shape = notes[one.value.meaning]
            columns = int(np.prod(shape))
            words = np.zeros((one.members, one.rows, 128), np.int32)
            for member in range(members):
                parts = [held(words, one.value, device, member, (ROWS, columns))[1] for device in range(devices)]
                where = f"{one.value.meaning} of phase {one.phase}"
                assert np.any(parts, axis=0).all(), f"{where}: some columns are on no device"
                if one.value.divided_by:
                    divisors = sum(part.width for part in one.value.divided_by)
                    assert divisors == sum(part.width for part in one.value.pieces), where


@pytest.mark.parametrize("name", SPECS)
def test_phases_that_compute_say_what_they_leave(name: str):
    graph = graph_of(SPECS[name], 2)
    silent = [phase.name for _, phase in phases_of(graph) if not phase.values]
    fused = ("expert_latent_norm_out", "expert_latent_out")
    assert [phase for phase in silent if not any(part in phase for part in (*MOVING, *fused))] == []


def test_devices_with_tiles_in_turn_compare_what_they_have_combined():
    spec = small_spec(mixer={"kind": "gqa", "heads": 8, "kv_heads": 1, "head_dim": 16})
    graph = graph_of(spec, 2, placement=PlacementRules(kv="sequence"))
    values = {phase.name: [value.meaning for value in phase.values] for _, phase in phases_of(graph)}
    assert values["attend"] == ["kept"] and values["combine"] == ["attn.mixed"]


def test_what_is_made_of_a_cache_is_known_until_it_joins_the_stream_and_behind():
    graph = graph_of(latent_spec(), 2)
    records = recorded(graph, {phase.name for _, phase in phases_of(graph)})
    layer = [one for one in records if one.layers]
    phases = {reached: {one.phase for one in layer if one.of_cache == reached} for reached in ("", "read", "behind")}
    assert phases["read"] == {"attend", "expand", "outputs", "join", "o", "mixer_sum", "mixer_residual"}
    assert {"mixer_norm", "token", "absorb"} <= phases[""] and {"feed_forward_norm", "up", "down"} <= phases["behind"]
    outside = [(one.phase, one.of_cache) for one in records if not one.layers]
    assert outside == [("embed", ""), ("final_norm", "behind"), ("head", "behind")]


def test_layers_behind_one_with_a_cache_are_behind_it_and_those_before_and_states_have_none():
    spec = RECURRENT["gated delta"]
    caching = [at.layer for at in spec.iter_layers() if at.block.mixer.kind == "gqa"]
    one = Recorded(0, "p", (0,), Value("v", "b", ()), of_cache="read")
    for at in spec.iter_layers():
        has = at.layer in caching
        expected = "read" if has else "behind" if caching and at.layer > caching[0] else ""
        assert of_cache(spec, one, at.layer) == expected
    assert of_cache(LATENT["latent, odd sizes"], replace(one, of_cache=""), 1) == "behind"


def test_experts_that_rounding_chooses_or_not_are_not_compared():
    """A kernel has no copy of one that it has not chosen. Rows that do not count choose nothing."""
    exact, rounded = (
        Noted(({"mlp.winners": np.array(winners)},), {}) for winners in ([[0, 6], [3, 5]], [[1, 0], [3, 5]])
    )
    each = Value("mlp.experts.*.up", "b", (), members=Members(0, 8, 8))
    for active, members in (([True, False], [0]), ([True, True], [0, 3, 5])):
        assert chosen(Copies((), {}, exact, rounded), 0, each, 8, np.array(active)) == members
    assert list(chosen(Copies((), {}, exact, rounded), 0, Value("mlp.out", "b", ()), 1, np.array([True, True]))) == [0]


def test_numbers_of_a_buffer_come_as_columns():
    """A head of 3 columns in the lanes 64 … of rows 4 r + 1, another shifted by one device, words of two bf16."""
    words = np.arange(1 * 12 * 128, dtype=np.float32).reshape(1, 12, 128)
    value = Value("v", "b", (Piece(0, 3, 1, 4, 1, 64, step=3, ring=2),))
    for device, columns in ((0, slice(0, 3)), (1, slice(3, 6))):
        got, there = held(words.view(np.int32), value, device, 0, (2, 6))
        assert there[:, columns].all() and there.sum() == 6
        assert got[:, columns].tolist() == [[words[0, 4 * row + 1, 64 + c] for c in range(3)] for row in range(2)]
    over = Value("v", "b", (Piece(0, 2, 0, 1, 6, 127),), divided_by=(Piece(0, 2, 5, 1, 0),))
    got, _ = held(words.view(np.int32), over, 0, 0, (1, 2))
    assert got.tolist() == [[words[0, 0, 127] / words[0, 5, 0], np.float32(words[0, 6, 0]) / words[0, 5, 1]]]
    turned = Value("v", "b", (Piece(0, 2, 3, 0, 0, turned=True),), "i32")
    got, _ = held(np.arange(12 * 128, dtype=np.int32).reshape(1, 12, 128), turned, 0, 0, (2, 2))
    assert got.tolist() == [[3 * 128, 4 * 128], [3 * 128 + 1, 4 * 128 + 1]]
    halves = np.zeros((1, 1, 128), np.int32)
    halves[0, 0, 5] = 0x40003F80  # 1.0 in the even row, 2.0 in the odd one
    got, _ = held(halves, Value("v", "b", (Piece(0, 1, 0, 1, 16, 5),), "bf16"), 0, 0, (2, 1))
    assert got.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "stored, arithmetic, of_cache, rounding",
    [
        ("bf16", "bf16", "read", ROUNDED),
        ("fp8", "bf16", "read", 2**-3),
        ("fp8", "bf16", "behind", 2**-4),
        ("fp8", "bf16", "", ROUNDED),
        ("f32", "f32", "read", 0.0),
    ],
)
def test_what_may_differ_is_what_the_coarsest_rounding_of_what_is_read_changes(
    stored: str, arithmetic: str, of_cache: OfCache, rounding: float
) -> None:
    """A number in the cache that is rounded the other way is no difference of a later step."""
    spec = small_spec(kv={"dtype": stored}, quantization={"weights": arithmetic})
    exact = np.array([[2.0, -1.0]], np.float32)
    noted = Noted(({"v": exact},), {})
    one = Recorded(0, "p", (0,), Value("v", "b", (Piece(0, 2, 0, 1, 1),)), "a", 1, of_cache)
    copies = Copies((one,), {"a": np.zeros((1, 1, 128), np.int32)}, noted, noted)
    (found,) = seen(copies, one, 0, spec, [True])
    assert found.limit == pytest.approx((EXACT + rounding) * 2.0)
