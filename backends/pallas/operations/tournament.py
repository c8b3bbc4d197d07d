"""The best of many candidates by merging sorted lists, in all lanes and sublanes at once.

A candidate is (value, id, what else there is of it …): the larger value is better, of equal ones the lower id. Lists of
n are arrays [lists, n, 8, 128], so that every sublane and lane of a register has a list of its own, the best first. Two
lists are merged by comparing one with the other upside down (bitonic merge, Batcher 1968): no comparison waits for a
reduction.
"""

import jax.numpy as jnp
from jax.experimental.pallas import tpu as pltpu

from schedc.backends.pallas.operations.words import LANES


def best_of(candidates, most, groups, stride):
    """The `most` (a power of two) best candidates of every lane, one list of registers in whose sublanes all are alike.

    candidates: arrays [8 n, 128]. With `groups` > 1 there are groups of `stride` lanes, and the lanes of the first have
    the best of their likes in all.
    """
    lists = tuple(part.reshape(-1, 1, 8, LANES) for part in candidates)
    while lists[0].shape[0] > 1:
        if lists[0].shape[0] % 2:
            worst = (
                jnp.full((1, *part.shape[1:]), -jnp.inf if place == 0 else 0.0) for place, part in enumerate(lists)
            )
            lists = tuple(jnp.concatenate([part, last]) for part, last in zip(lists, worst, strict=True))
        pairs = [part.reshape(-1, 2, *part.shape[1:]) for part in lists]
        lists = merge_sorted([pair[:, 0] for pair in pairs], [pair[:, 1] for pair in pairs], most)
    for shift in (4, 2, 1):
        lists = merge_sorted(lists, moved(lists, shift, 0), most)
    shift = 1
    while shift < groups:
        lists = merge_sorted(lists, moved(lists, LANES - shift * stride, 1), most)
        shift *= 2
    return tuple(part[0] for part in lists)


def merge_sorted(one, other, most):
    """The best of two sorted lists of the same length, up to `most`."""
    length = one[0].shape[1]
    upside_down = [jnp.concatenate([part[:, n : n + 1] for n in reversed(range(length))], axis=1) for part in other]
    ahead, behind = in_order(one, upside_down)
    ahead = sorted_bitonic(ahead)
    if 2 * length > most:
        return ahead
    return tuple(jnp.concatenate(pair, axis=1) for pair in zip(ahead, sorted_bitonic(behind), strict=True))


def sorted_bitonic(lists):
    """Lists that rise and then fall, or the other way round, sorted."""
    count, length = lists[0].shape[:2]
    apart = length // 2
    while apart:
        halves = [part.reshape(-1, 2, apart, 8, LANES) for part in lists]
        pairs = in_order([half[:, 0] for half in halves], [half[:, 1] for half in halves])
        lists = tuple(jnp.stack(pair, axis=1).reshape(count, length, 8, LANES) for pair in zip(*pairs, strict=True))
        apart //= 2
    return lists


def in_order(one, other):
    """Candidates of two arrays, in every element the better one first."""
    first = (one[0] > other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
    return (
        tuple(jnp.where(first, x, y) for x, y in zip(one, other, strict=True)),
        tuple(jnp.where(first, y, x) for x, y in zip(one, other, strict=True)),
    )


def moved(lists, shift, axis):
    """Of every element the candidates `shift` sublanes or lanes before it, around the end."""
    return [pltpu.roll(part.reshape(-1, 8, LANES), shift, axis + 1).reshape(part.shape) for part in lists]
