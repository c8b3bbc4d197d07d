"""The arrays of the search: what is known of the problem, and the state of a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schedc.ir.allocate.problem import Item, Problem

# Rows of `Tables.item`.
SIZE, ALIGN, RANK, TWIN = range(4)
"""RANK: of two items with the same lowest row, the one of lower rank is placed first. TWIN: an equal item, or -1."""

# Rows of `Tables.first`: what `Tables.links` lists.
SECTIONS_OF, ITEMS_OF, MEETS, OBSTACLES, FIXED_OF = range(5)
"""Sections of an item, items of a section, items that an item meets, rows (first, end) of the fixed items that an
item meets, (first, rows) of the fixed items of a section."""

# Rows of `State.item`.
LOWEST, ROW, LEVEL, TIME, REFUSED, REFUSED_LEVEL, SUPPORT, ENTRY, QUEUED, MARKED, LISTED = range(11)
"""LOWEST: the lowest row. ROW: where it is placed, or -1; by the choice LEVEL, at the trail's length TIME. REFUSED: the
row it was last postponed from, or -1, by the choice REFUSED_LEVEL; SUPPORT: an item with the lowest top of those that
may keep it up. ENTRY: its last entry of the trail that set LOWEST, or -1. QUEUED: a mark of `propagate`.
MARKED and LISTED are per section: a mark and a list of sections to examine."""

# Rows of `State.trail`, an entry a column.
SUBJECT, KIND, VALUE, BEFORE, FIRST, SECOND, THIRD, FAILURE, ASKED, PENDING = range(10)
"""The item, what happened, the new lowest row, the item's entry before; three numbers by kind; the last failure that
asked for it, the row to explain, and whether it is on the stack of `explain`."""
LIFTED, HELD, PLACED, POSTPONED, BLOCKED, ORDERED = range(6)
"""LIFTED above an item: its row, the level that placed it. HELD up as it was postponed: the row refused, the level.
PLACED. POSTPONED: REFUSED, REFUSED_LEVEL and SUPPORT as they were. BLOCKED by a fixed item: its row.
ORDERED above its twin: the twin, or the item itself at the root."""

# Rows of `State.level`.
CHOSEN, MARK, SECOND_BRANCH = range(3)
# Elements of `State.numbers`.
LENGTH, LIMIT, FULL, SECTIONS, FAILURES = range(5)
"""Entries of the trail, from how many on no more moves are made, and whether that happened; sections; failures."""

FAR = 1 << 60
BITS = 62
"""Levels in one word of a set of levels."""


class Tables(NamedTuple):
    item: np.ndarray
    first: np.ndarray
    links: np.ndarray


class State(NamedTuple):
    item: np.ndarray
    trail: np.ndarray
    work: np.ndarray
    """Row 0 is the queue of `propagate` and the stack of `explain`, row 1 the items of a section."""
    level: np.ndarray
    causes: np.ndarray
    """Sets of levels: a row for each level's first branch, and the last row for the present failure."""
    numbers: np.ndarray


def sections(items: Sequence[Item]) -> list[list[int]]:
    """The items (by number) of each section of time, without sections whose items are all in a neighbouring one."""
    changes: dict[int, list[tuple[bool, int]]] = {}
    for i, item in enumerate(items):
        for first, end in item.spans:
            changes.setdefault(first, []).append((True, i))
            changes.setdefault(end, []).append((False, i))
    found: list[frozenset[int]] = []
    live: set[int] = set()
    for time in sorted(changes):
        live -= {i for begins, i in changes[time] if not begins}
        live |= {i for begins, i in changes[time] if begins}
        present = frozenset(live)
        while found and found[-1] <= present:
            found.pop()
        if not (found and present <= found[-1]):
            found.append(present)
    return [sorted(section) for section in found if section]


def tables(problem: Problem) -> Tables:
    """The tables of the items that are not fixed, in their order; every rank is 0."""
    free = [item for item in problem.items if item.fixed is None]
    pinned = [item for item in problem.items if item.fixed is not None]
    members = sections([*free, *pinned])
    of_item: list[list[int]] = [[] for _ in free]
    fixed_of: list[list[int]] = [[] for _ in members]
    items_of = [[i for i in section if i < len(free)] for section in members]
    for number, section in enumerate(members):
        for i in section:
            if i < len(free):
                of_item[i].append(number)
            else:
                item = pinned[i - len(free)]
                fixed_of[number] += [_row(item), item.size]
    meets = [sorted({j for s in of_item[i] for j in items_of[s]} - {i}) for i in range(len(free))]
    obstacles = [
        [row for pair in sorted((_row(p), _row(p) + p.size) for p in pinned if p.meets(item)) for row in pair]
        for item in free
    ]
    facts = np.zeros((4, len(free)), np.int64)
    facts[SIZE] = [i.size for i in free]
    facts[ALIGN] = [i.align for i in free]
    facts[TWIN] = _twins(free)
    lists = [of_item, items_of, meets, obstacles, fixed_of]
    first = np.zeros((len(lists), max(map(len, lists)) + 1), np.int64)
    links: list[int] = []
    for row, several in enumerate(lists):
        for i, one in enumerate(several):
            first[row, i] = len(links)
            links += one
        first[row, len(several) :] = len(links)
    return Tables(facts, first, np.array([*links, 0], np.int64))


def _row(item: Item) -> int:
    assert item.fixed is not None
    return item.fixed


def _twins(items: Sequence[Item]) -> list[int]:
    """For each item the next one with the same spans, size and alignment, or -1."""
    last: dict[tuple[object, ...], int] = {}
    twins = [-1] * len(items)
    for i, item in enumerate(items):
        key = (item.spans, item.size, item.align)
        if key in last:
            twins[last[key]] = i
        last[key] = i
    return twins


def state(problem: Tables, room: int) -> State:
    """The state at the root; `room` scales what the trail and the levels can hold."""
    n, listed = problem.item.shape[1], problem.first.shape[1]
    item = np.full((11, max(n, listed) + 1), -1, np.int64)
    for row in (LOWEST, QUEUED, MARKED):
        item[row] = 0
    levels, entries = room * 8 * n + 64, room * 200 * n + 1000
    capacity = entries + 4 * n + len(problem.links)
    sections_end = int(problem.first[ITEMS_OF].argmax())
    return State(
        item,
        np.zeros((10, capacity), np.int64),
        np.zeros((2, capacity), np.int64),
        np.zeros((3, levels), np.int64),
        np.zeros((levels + 1, levels // BITS + 1), np.int64),
        np.array([0, entries, 0, sections_end, 0], np.int64),
    )
