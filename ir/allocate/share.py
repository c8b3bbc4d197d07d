"""Several pools that share one capacity: their heights add up, and each is as low as it must be."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Problem, aligned

POOL_ROWS = 8
"""A pool takes a multiple of this many rows: a tile of 32-bit words."""

TOLERANCE = 0.01
"""A packing this close to the lower bound of its height is as good as the lowest."""


@dataclass(frozen=True)
class Packing:
    """Addresses for one pool, and what is known of the lowest height."""

    problem: Problem
    addresses: dict[str, int]
    bound: int
    """No packing takes fewer rows."""
    tried: int = -1
    """The most rows for which a search found no packing, whether it proved that there is none or ran out of time."""
    searching: bool = True
    """Whether a lower packing may still be found: neither the bound nor the end of the time is reached."""

    @property
    def rows(self) -> int:
        return aligned(self.problem.height(self.addresses), POOL_ROWS)

    @property
    def good(self) -> bool:
        return self.rows <= self.bound * (1 + TOLERANCE) or self.rows <= self.bound + POOL_ROWS - 1


@dataclass(frozen=True)
class Shared:
    """The packings of all pools: `fits` the capacity, `cannot-fit` (proven), or `not-found` in the time."""

    kind: Literal["fits", "cannot-fit", "not-found"]
    packings: dict[str, Packing]

    @property
    def rows(self) -> int:
        return sum(packing.rows for packing in self.packings.values())

    @property
    def bound(self) -> int:
        return sum(packing.bound for packing in self.packings.values())


def share(problems: Mapping[str, Problem], capacity: int, seconds: float) -> Shared:
    """Packings of at most `capacity` rows in all."""
    deadline = time.monotonic() + seconds
    packings = {pool: first_packing(problem) for pool, problem in problems.items()}
    while True:
        shared = Shared("fits", packings)
        excess = shared.rows - capacity
        if excess <= 0:
            return shared
        if shared.bound > capacity:
            return replace(shared, kind="cannot-fit")
        left = [pool for pool, packing in packings.items() if packing.searching]
        if not left:
            return replace(shared, kind="not-found")
        pool = max(left, key=lambda pool: (packings[pool].rows - packings[pool].bound, pool))
        packings = {**packings, pool: _lower(packings[pool], excess, (deadline - time.monotonic()) / len(left))}


def first_packing(problem: Problem) -> Packing:
    return Packing(problem, greedy(problem), aligned(problem.floor(), POOL_ROWS))


def improved(packing: Packing, seconds: float) -> Packing:
    """A packing within the tolerance of the lowest height, if the time is enough to find one."""
    deadline = time.monotonic() + seconds
    while packing.searching and not packing.good:
        packing = _lower(packing, packing.rows - packing.bound, deadline - time.monotonic())
    return packing


def _lower(packing: Packing, excess: int, seconds: float) -> Packing:
    """One exact search, for `excess` rows less at most; after a failure, for half of what is left."""
    lowest = max(packing.bound, packing.tried + POOL_ROWS)
    target = max(lowest, packing.rows - aligned(excess, POOL_ROWS))
    if packing.tried >= 0:
        target = max(target, (lowest + packing.rows) // 2 // POOL_ROWS * POOL_ROWS)
    if target >= packing.rows or seconds <= 0:
        return replace(packing, searching=False)
    answer = exact(packing.problem, target, seconds / 2)
    if answer.kind == "fits":
        return replace(packing, addresses=answer.addresses)
    bound = target + POOL_ROWS if answer.kind == "cannot-fit" else packing.bound
    return replace(packing, bound=bound, tried=target)
