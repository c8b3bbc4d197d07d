"""The operations of attention to tiles on several devices alone: queries together, softmaxes apart and combined."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.attention import MASKED
from schedc.backends.pallas.operations.shared_tiles import combine_softmaxes, join_queries, part_softmaxes

pytestmark = pytest.mark.kernel

LANES = 128
RANDOM = np.random.default_rng(0)


def ran(operation: Callable[..., None], rows: int, *given: np.ndarray) -> np.ndarray:
    """f32[rows, 128] that the operation leaves, as words, of words."""
    words = [jnp.asarray(each.view(np.int32)) for each in given]
    call = pl.pallas_call(
        lambda *refs: operation(*refs),
        jax.ShapeDtypeStruct((rows, LANES), jnp.int32),
        interpret=pltpu.InterpretParams(uninitialized_memory="nan"),
    )
    return np.asarray(call(*words)).view(np.float32)


def lanes(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal((*shape, LANES)).astype(np.float32)


@pytest.mark.parametrize(("devices", "used"), [(2, 0), (4, 2), (2, 3), (3, 5)])
def test_heads_lie_one_after_the_other_and_come_apart_again(devices: int, used: int) -> None:
    sections, block = 3, 8
    sizes = {"devices": devices, "sections": sections, "block": block, "used": used}
    rows = used or block
    whole = -(-devices * rows // 8) * 8
    own = lanes(devices, sections, block)
    joined = ran(lambda x, q: join_queries(x, q, **sizes), sections * whole, own.reshape(-1, LANES))
    together = joined.reshape(sections, whole, LANES)[:, : devices * rows]
    assert (together == own[:, :, :rows].transpose(1, 0, 2, 3).reshape(sections, devices * rows, LANES)).all()
    apart = ran(lambda x, out: part_softmaxes(x, out, **sizes), devices * sections * block, joined)
    assert (apart.reshape(own.shape)[:, :, :rows] == own[:, :, :rows]).all()


def softmax(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """[panel | maximum | sum][8 rows] over scores f32[8, n] of values f32[n, 128]; without any, of nothing."""
    top = scores.max(axis=1, keepdims=True) if scores.shape[1] else np.full((8, 1), MASKED, np.float32)
    weights = np.exp(scores - top)
    parts = (weights @ values, np.broadcast_to(top, (8, LANES)), np.broadcast_to(weights.sum(1)[:, None], (8, LANES)))
    return np.concatenate(parts).astype(np.float32)


def combined(parts: list[np.ndarray]) -> np.ndarray:
    """Of one panel and two sequences, which have the same here: [sequence][panel | maximum | sum][8 rows]."""
    two = [np.concatenate([part, part]) for part in parts]
    sizes = {"count": len(parts) - 1, "sequences": 2, "panels": 1, "block": 8}
    out = ran(lambda own, rest, out: combine_softmaxes(own, rest, out, **sizes), 48, two[0], np.concatenate(two[1:]))
    assert (out[:24] == out[24:]).all()
    return out[:24]


@pytest.mark.parametrize("cuts", [(10, 30), (0, 40), (1, 2)])
def test_softmaxes_of_parts_are_combined_to_that_of_all(cuts: tuple[int, int]) -> None:
    scores, values = lanes(8)[:, :40] * 5, lanes(40)
    parts = [softmax(s, v) for s, v in zip(np.split(scores, cuts, 1), np.split(values, cuts), strict=True)]
    np.testing.assert_allclose(combined(parts), softmax(scores, values), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_device_without_a_tile_adds_exactly_nothing(place: int) -> None:
    """Whatever its weighted sums are: their share is zero."""
    parts = [softmax(lanes(8)[:, :7], lanes(7)) for _ in range(2)]
    empty = softmax(np.zeros((8, 0), np.float32), np.zeros((0, LANES), np.float32))
    other = np.concatenate([lanes(8), empty[8:16], lanes(8)])
    beside = [combined([*parts[:place], each, *parts[place:]]) for each in (empty, other)]
    assert (beside[0] == beside[1]).all()
    np.testing.assert_allclose(beside[0], combined(parts), rtol=2e-6, atol=2e-6)


def test_of_nothing_at_all_the_sum_of_weights_is_zero() -> None:
    empty = softmax(np.zeros((8, 0), np.float32), np.zeros((0, LANES), np.float32))
    assert (combined([empty] * 3) == empty).all()
