"""The router's operation alone, on given logits: which experts, in which order, with which weights."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.router import route
from schedc.reference.feed_forwards.router import route as reference_route
from schedc.spec.feed_forwards.router import Router

pytestmark = pytest.mark.kernel

SOFTMAX = Router(score="softmax", renormalise=True)
SIGMOID = Router(score="sigmoid", selection_bias=True, renormalise=True, epsilon=1e-20, scale=2.5)
OF_CHOSEN = Router(score="softmax_of_chosen", bias=True, renormalise=False)
GROUPS = Router(score="sigmoid", selection_bias=True, renormalise=True, groups=4, groups_kept=2)
BEST_GROUP = Router(
    score="softmax", renormalise=False, groups=4, groups_kept=2, group_score="max", logit_multiplier=0.5
)


@dataclass(frozen=True)
class Routed:
    """`ids` i32[rows, top_k]; `weights` f32[rows, experts]; `chosen`: as long as its count says."""

    ids: np.ndarray
    weights: np.ndarray
    chosen: list[int]


def routed(
    router: Router,
    top_k: int,
    logits: np.ndarray,
    bias: np.ndarray | None = None,
    active: tuple[int, ...] = (),
    held: range | None = None,
    by_number: bool = False,
) -> Routed:
    """What the operation makes of logits [rows, experts], on a device that holds the experts `held` (None: all)."""
    rows, experts = logits.shape
    held = range(experts) if held is None else held
    padded, panels = -(-rows // 8) * 8, -(-experts // 128)
    words = np.full((padded, panels * 128), 7.0, np.float32)  # what is past the last expert must not matter
    words[:rows, :experts] = logits
    inputs = [words.reshape(padded, panels, 128).transpose(1, 0, 2).reshape(-1, 128)]
    names = [name for name in ("bias", "selection_bias") if getattr(router, name)]
    for _ in names:
        inputs.append(np.pad(bias, (0, panels * 128 - experts), constant_values=9.0).reshape(panels, 128))
    most = min(rows * top_k, len(held))

    places = -(-top_k // 8) * 8
    may_repeat = rows > 1 or len(held) < top_k or by_number

    def kernel(flags, logits_ref, *refs):
        given, (choices, winners, chosen, count, seen) = refs[: len(names)], refs[len(names) :]
        route(
            logits_ref, choices, [flags[row] for row in range(rows)], held.start, winners, chosen, count,
            seen if may_repeat else None, **dict(zip(names, given, strict=True)),
            rows=padded, sequences=rows, experts=experts, members=len(held), top_k=top_k, score=router.score,
            multiplier=router.logit_multiplier, groups=router.groups, groups_kept=router.groups_kept,
            group_score=router.group_score, renormalise=router.renormalise, epsilon=router.epsilon,
            scale=router.scale, by_number=by_number,
        )  # fmt: skip

    smem = partial(pl.BlockSpec, memory_space=pltpu.SMEM)
    shape = jax.ShapeDtypeStruct
    choices, winners, chosen, count = pl.pallas_call(
        kernel,
        out_shape=(
            shape((2 * places, 128), jnp.int32),
            shape((rows * top_k,), jnp.int32),
            shape((most + 1,), jnp.int32),
            shape((1,), jnp.int32),
        ),
        in_specs=[smem(), *[pl.BlockSpec(memory_space=pltpu.VMEM)] * len(inputs)],
        out_specs=(pl.BlockSpec(memory_space=pltpu.VMEM), smem(), smem(), smem()),
        scratch_shapes=[pltpu.SMEM((len(held),), jnp.int32)],
        interpret=pltpu.InterpretParams(uninitialized_memory="nan"),
    )(jnp.asarray(active or (1,) * rows, jnp.int32), *[jnp.asarray(x.view(np.int32)) for x in inputs])
    assert 0 <= int(count[0]) <= most
    assert all(0 <= int(member) < len(held) for member in chosen)
    by_row = by_expert(np.asarray(choices)[:, :rows], top_k, places, experts)
    return Routed(np.asarray(winners).reshape(rows, top_k), by_row, [int(e) for e in chosen[: int(count[0])]])


def by_expert(choices: np.ndarray, top_k: int, places: int, experts: int) -> np.ndarray:
    """f32[rows, experts] of the experts that every row has chosen, and the weights below them."""
    ids, weights = choices[:top_k], choices[places : places + top_k].view(np.float32)
    whole = np.zeros((choices.shape[1], experts), np.float32)
    for row, place in np.argwhere(ids.T >= 0):
        whole[row, ids[place, row]] = weights[place, row]
    assert not weights[ids < 0].any()
    return whole


def expected(router: Router, top_k: int, logits: np.ndarray, bias: np.ndarray | None = None) -> Routed:
    """By the reference; `chosen` in the order of the rows."""
    kinds = [bias if present else None for present in (router.bias, router.selection_bias)]
    ids, weights = (np.asarray(x) for x in reference_route(router, top_k, jnp.asarray(logits), *kinds))
    whole = np.zeros(logits.shape, np.float32)
    np.put_along_axis(whole, ids, weights, axis=1)
    return Routed(ids, whole, list(dict.fromkeys(ids.reshape(-1).tolist())))


def agree(found: Routed, right: Routed) -> None:
    np.testing.assert_array_equal(found.ids, right.ids)
    np.testing.assert_allclose(found.weights, right.weights, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(found.weights == 0, right.weights == 0)
    assert found.chosen == right.chosen


@pytest.mark.parametrize(
    ("router", "experts", "top_k"),
    [
        (SOFTMAX, 8, 2),
        (SOFTMAX, 8, 8),
        (OF_CHOSEN, 128, 4),
        (SIGMOID, 300, 8),
        (SIGMOID, 896, 16),
        (GROUPS, 16, 3),
        (GROUPS, 256, 8),
        (BEST_GROUP, 20, 2),
        (SOFTMAX, 40, 1),
    ],
)
def test_it_chooses_and_weighs_as_the_reference_does(router: Router, experts: int, top_k: int) -> None:
    random = np.random.default_rng(experts)
    rows = {8: 1, 300: 16}.get(experts, 5)
    logits = random.standard_normal((rows, experts)).astype(np.float32)
    bias = random.standard_normal(experts).astype(np.float32)
    agree(routed(router, top_k, logits, bias), expected(router, top_k, logits, bias))


@pytest.mark.parametrize("router", [SOFTMAX, GROUPS])
def test_of_equal_choices_the_lowest_expert_wins(router: Router) -> None:
    """All equal; and equal in twos, half of them above the rest."""
    logits = np.zeros((2, 16), np.float32)
    logits[1] = np.repeat([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0], 2)
    zero = np.zeros(16, np.float32)
    found = routed(router, 4, logits, zero)
    agree(found, expected(router, 4, logits, zero))
    assert found.ids[0].tolist() == [0, 1, 2, 3]


def test_choices_that_differ_by_one_bit_are_told_apart() -> None:
    """Without a softmax, which may round them to the same."""
    logits = np.ones((8, 64), np.float32)
    above = np.nextafter(np.float32(1), np.float32(2))
    for row in range(8):
        logits[row, [63 - 5 * row, 7 * row]] = above
    bias = np.zeros(64, np.float32)
    found = routed(OF_CHOSEN, 3, logits, bias)
    agree(found, expected(OF_CHOSEN, 3, logits, bias))
    assert [sorted(row[:2]) for row in found.ids.tolist()] == [sorted([63 - 5 * r, 7 * r]) for r in range(8)]


def peaked(*rows: list[int]) -> np.ndarray:
    """Logits over 12 experts: the given ones highest, the first of them most."""
    logits = np.zeros((len(rows), 12), np.float32)
    for row, experts in enumerate(rows):
        logits[row, experts] = np.arange(len(experts), 0, -1)
    return logits


SAME, DISJOINT = peaked([7, 2], [7, 2], [2, 7]), peaked([7, 2], [0, 11], [4, 5])


def test_an_expert_that_all_rows_choose_is_listed_once() -> None:
    assert routed(SOFTMAX, 2, SAME).chosen == [7, 2]


def test_disjoint_choices_are_all_listed_in_the_order_of_the_rows_or_by_number() -> None:
    assert routed(SOFTMAX, 2, DISJOINT).chosen == [7, 2, 0, 11, 4, 5]
    assert routed(SOFTMAX, 2, DISJOINT, by_number=True).chosen == [0, 2, 4, 5, 7, 11]


def test_inactive_rows_choose_nothing() -> None:
    found = routed(SOFTMAX, 2, DISJOINT, active=(0, 1, 0))
    assert found.chosen == [0, 11]
    assert not found.weights[[0, 2]].any()
    assert routed(SOFTMAX, 2, DISJOINT, active=(0, 0, 0)).chosen == []


@pytest.mark.parametrize(
    ("held", "chosen"), [(range(0, 4), [2, 0]), (range(4, 8), [3, 0, 1]), (range(8, 12), [3]), (range(8, 10), [])]
)
def test_a_device_lists_its_own_experts_by_their_number_on_it(held: range, chosen: list[int]) -> None:
    assert routed(SOFTMAX, 2, DISJOINT, held=held).chosen == chosen


def test_a_row_of_nan_chooses_experts_that_there_are_and_leaves_the_others_alone() -> None:
    logits = DISJOINT.copy()
    logits[1] = np.nan
    found, right = routed(SOFTMAX, 2, logits), expected(SOFTMAX, 2, DISJOINT)
    np.testing.assert_array_equal(found.ids[[0, 2]], right.ids[[0, 2]])
    np.testing.assert_allclose(found.weights[[0, 2]], right.weights[[0, 2]], rtol=1e-5)
