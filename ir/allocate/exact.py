"""Exact packing into a given height: the search, restarted with other orders until it ends or the time is up.

How long one search takes to find a packing depends by orders of magnitude on which of several equally low items it
places first. So every search gets few nodes, and the next one another order; the orders take turns, and the nodes grow.
A proof that there is none takes one search as long as it takes: a third of the nodes goes to few long searches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Literal

import numpy as np

from schedc.ir.allocate.problem import Item, Problem, aligned
from schedc.ir.allocate.validate import validate

NODES, GROWTH = 1000, 1.1
"""Nodes of the first searches, and the factor after every round of the orders."""

LONG = 4000
"""Nodes of the first of the long searches; each has twice those of the one before."""

NOISE = 0.1
"""After the first round an item's rank is shifted by at most this share of all ranks."""


@dataclass(frozen=True)
class Answer:
    kind: Literal["fits", "cannot-fit", "not-found"]
    """`not-found`: the time ran out."""
    addresses: dict[str, int]
    nodes: int = 0
    """Branches that were entered."""


Clock = Callable[[], float]


def exact(problem: Problem, height: int, seconds: float, clock: Clock = time.monotonic, seed: int = 0) -> Answer:
    """Addresses that end at `height` or below, or whether there are none.

    `seed` is that of the shifts of the orders; the same one gives the same answer, unless time runs out.
    """
    if _impossible(problem, height):
        return Answer("cannot-fit", {})
    deadline = clock() + seconds
    addresses: dict[str, int] = {item.name: item.fixed for item in problem.items if item.fixed is not None}
    nodes, undecided = 0, False
    for part in _parts(problem):
        answer = _search(part, height, deadline, clock, seed)
        nodes += answer.nodes
        if answer.kind == "cannot-fit":
            return Answer("cannot-fit", {}, nodes)
        undecided |= answer.kind == "not-found"
        addresses |= answer.addresses
    return Answer("not-found", {}, nodes) if undecided else Answer("fits", addresses, nodes)


def _impossible(problem: Problem, height: int) -> bool:
    """Whether the peak is too high, or the fixed items are not valid."""
    fixed = Problem(tuple(item for item in problem.items if item.fixed is not None))
    addresses = {item.name: item.fixed for item in fixed.items if item.fixed is not None}
    return problem.peak()[0] > height or bool(validate(fixed, addresses, height))


def _parts(problem: Problem) -> Iterator[Problem]:
    """The problem in parts that share no time, each with the fixed items that it meets."""
    fixed = [item for item in problem.items if item.fixed is not None]
    left = [item for item in problem.items if item.fixed is None]
    while left:
        part, reached = [left.pop(0)], 0
        while reached < len(part):
            met = [item for item in left if item.meets(part[reached])]
            left = [item for item in left if item not in met]
            part += met
            reached += 1
        yield Problem((*part, *(item for item in fixed if any(item.meets(other) for other in part))))


def _search(problem: Problem, height: int, deadline: float, clock: Clock, seed: int) -> Answer:
    from schedc.ir.allocate.search.dive import CANNOT_FIT, FITS, NO_ROOM, dive
    from schedc.ir.allocate.search.layout import RANK, ROW, state, tables

    problem, height = _rounded(problem, height)
    free = [item for item in problem.items if item.fixed is None]
    known = tables(problem)
    nodes, room = 0, 1
    for ranks, most in _schedule(_orders(problem), Random(seed)):
        known.item[RANK] = ranks
        while True:
            branch = state(known, room)
            result, entered = dive(known, branch, height, most)
            nodes += entered
            if result != NO_ROOM:
                break
            room *= 2
        if result == FITS:
            rows = {item.name: int(branch.item[ROW, i]) for i, item in enumerate(free)}
            return Answer("fits", rows, nodes)
        if result == CANNOT_FIT:
            return Answer("cannot-fit", {}, nodes)
        if clock() > deadline:
            break
    return Answer("not-found", {}, nodes)


def _schedule(orders: list[np.ndarray], random: Random) -> Iterator[tuple[np.ndarray, int]]:
    """Ranks and the most nodes of one search after the other, without end."""
    short, long, longs = 0, LONG, 0
    for turn in count():
        turns, which = divmod(turn, len(orders))
        reach = NOISE * len(orders[which]) if turns else 0.0
        shifts = np.array([reach * (2 * random.random() - 1) for _ in orders[which]])
        most = int(NODES * GROWTH**turns)
        yield np.argsort(np.argsort(orders[which] + shifts, kind="stable"), kind="stable"), most
        short += most
        if short >= 2 * long:
            yield orders[longs % len(orders)], long
            long, longs = 2 * long, longs + 1


def _rounded(problem: Problem, height: int) -> tuple[Problem, int]:
    """The problem in units of what divides every address, if the height is a number of these units too."""
    unit = int(np.gcd.reduce([height, *(i.align for i in problem.items), *(i.fixed or 0 for i in problem.items)]))
    if unit <= 1:
        return problem, height
    items = tuple(Item(i.name, i.spans, aligned(i.size, unit), i.align, i.fixed) for i in problem.items)
    return Problem(items), height


def _orders(problem: Problem) -> list[np.ndarray]:
    """Ranks of the items that are not fixed: by the fullest time that they see, their duration and their area."""
    from schedc.ir.allocate.search.layout import sections

    free = [item for item in problem.items if item.fixed is None]
    members = sections(problem.items)
    position = {item.name: i for i, item in enumerate(problem.items)}
    loads = [sum(problem.items[i].size for i in section) for section in members]
    fullest = dict.fromkeys(range(len(problem.items)), 0)
    for section, load in zip(members, loads, strict=True):
        for i in section:
            fullest[i] = max(fullest[i], load)
    total = np.array([fullest[position[item.name]] for item in free], np.int64)
    width = np.array([item.duration for item in free], np.int64)
    area = width * np.array([item.size for item in free], np.int64)
    keys = [(total, width, area), (width, area, total), (total, area, width), (area,), (width,)]
    return [np.argsort(np.lexsort([-key for key in reversed(several)]), kind="stable") for several in keys]
