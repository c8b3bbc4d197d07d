"""The search itself: choices one after the other, and the way back from a failure to its last cause."""

from __future__ import annotations

from schedc.ir.allocate.search.explain import explain_row
from schedc.ir.allocate.search.jit import compiled
from schedc.ir.allocate.search.layout import (
    BITS,
    CHOSEN,
    FULL,
    LENGTH,
    LOWEST,
    MARK,
    OBSTACLES,
    ORDERED,
    RANK,
    ROW,
    SECOND_BRANCH,
    SECTIONS,
    SIZE,
    TWIN,
    State,
    Tables,
)
from schedc.ir.allocate.search.moves import overfull, place, postpone
from schedc.ir.allocate.search.trail import lift, take_back

FITS, CANNOT_FIT, GAVE_UP, NO_ROOM = 1, 0, -1, -2
"""GAVE_UP: after as many nodes as were allowed. NO_ROOM: the trail or the levels are full."""


@compiled
def lowest_item(t: Tables, s: State) -> int:
    best = -1
    for i in range(t.item.shape[1]):
        if s.item[ROW, i] < 0 and (
            best < 0
            or s.item[LOWEST, i] < s.item[LOWEST, best]
            or (s.item[LOWEST, i] == s.item[LOWEST, best] and t.item[RANK, i] < t.item[RANK, best])
        ):
            best = i
    return best


@compiled
def root(t: Tables, s: State, height: int) -> bool:
    """What holds before any choice."""
    for i in range(t.item.shape[1]):
        if t.first[OBSTACLES, i] < t.first[OBSTACLES, i + 1]:
            lift(t, s, i, s.item[LOWEST, i], ORDERED, i, 0)
        twin = t.item[TWIN, i]
        if twin >= 0:
            lift(t, s, twin, s.item[LOWEST, i] + t.item[SIZE, i], ORDERED, i, 0)
    fine = True
    for section in range(s.numbers[SECTIONS]):
        fine = fine and not overfull(t, s, section, height)
    return fine


@compiled
def dive(t: Tables, s: State, height: int, most: int) -> tuple[int, int]:
    """(FITS, CANNOT_FIT, GAVE_UP or NO_ROOM, nodes); if it fits, the rows are in the state."""
    if not root(t, s, height):
        return CANNOT_FIT, 0
    level = nodes = 0
    while True:
        i = lowest_item(t, s)
        if i < 0:
            return FITS, nodes
        if level + 1 >= s.level.shape[1]:
            return NO_ROOM, nodes
        if nodes >= most:
            return GAVE_UP, nodes
        nodes += 1
        s.level[CHOSEN, level], s.level[MARK, level], s.level[SECOND_BRANCH, level] = i, s.numbers[LENGTH], 0
        s.causes[-1, :] = 0
        fine = place(t, s, i, level, height)
        while not fine:
            if s.numbers[FULL]:
                return NO_ROOM, nodes
            take_back(s, s.level[MARK, level])
            word, bit = level // BITS, 1 << (level % BITS)
            caused = s.causes[-1, word] & bit != 0
            s.causes[-1, word] &= ~bit
            if caused and s.level[SECOND_BRANCH, level] == 0:
                i = s.level[CHOSEN, level]
                explain_row(t, s, i, s.item[LOWEST, i])
                s.causes[level, :] = s.causes[-1, :]
                s.causes[-1, :] = 0
                s.level[SECOND_BRANCH, level] = 1
                nodes += 1
                fine = postpone(t, s, i, level, height)
                continue
            if caused:
                s.causes[-1, :] |= s.causes[level, :]
            level -= 1
            if level < 0:
                return CANNOT_FIT, nodes
        level += 1
