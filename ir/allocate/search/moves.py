"""The two branches of a choice, and all that follows from them."""

from __future__ import annotations

from schedc.ir.allocate.search.explain import explain_fall, explain_section
from schedc.ir.allocate.search.jit import compiled
from schedc.ir.allocate.search.layout import (
    FAR,
    FIXED_OF,
    FULL,
    HELD,
    ITEMS_OF,
    LENGTH,
    LEVEL,
    LIFTED,
    LIMIT,
    LISTED,
    LOWEST,
    MARKED,
    MEETS,
    ORDERED,
    PLACED,
    POSTPONED,
    QUEUED,
    REFUSED,
    REFUSED_LEVEL,
    ROW,
    SECTIONS_OF,
    SIZE,
    SUPPORT,
    TIME,
    TWIN,
    State,
    Tables,
)
from schedc.ir.allocate.search.trail import lift, record


@compiled
def enqueue(s: State, i: int, end: int) -> int:
    if s.item[QUEUED, i] == 0:
        s.item[QUEUED, i] = 1
        s.work[0, end] = i
        end += 1
    return end


@compiled
def hold(t: Tables, s: State, i: int, end: int) -> int:
    """Keep the postponed item i above the lowest of the items that may keep it up; returns the queue's end, or -1."""
    refused = s.item[REFUSED, i]
    clear = refused + t.item[SIZE, i]
    best, support = FAR, -1
    for x in range(t.first[MEETS, i], t.first[MEETS, i + 1]):
        other = t.links[x]
        placed = s.item[ROW, other]
        at = placed if placed >= 0 else s.item[LOWEST, other]
        top = at + t.item[SIZE, other]
        if at >= clear or (placed >= 0 and top <= refused):
            continue
        if top < best:
            best, support = top, other
    if support < 0:
        return -1
    s.item[SUPPORT, i] = support
    best = max(best, refused + 1)
    if best > s.item[LOWEST, i]:
        lift(t, s, i, best, HELD, refused, s.item[REFUSED_LEVEL, i])
        end = enqueue(s, i, end)
    return end


@compiled
def overfull(t: Tables, s: State, section: int, height: int) -> bool:
    """Whether a section cannot hold its items; if so, their reasons are blamed.

    Of the items that are not placed, and the fixed ones, all that start at row r or above must fit above r.
    """
    count, total, highest = 0, 0, 0
    for x in range(t.first[ITEMS_OF, section], t.first[ITEMS_OF, section + 1]):
        i = t.links[x]
        if s.item[ROW, i] < 0:
            s.work[1, count] = i
            count += 1
            total += t.item[SIZE, i]
            highest = max(highest, s.item[LOWEST, i])
    for x in range(t.first[FIXED_OF, section], t.first[FIXED_OF, section + 1], 2):
        total += t.links[x + 1]
    if highest + total <= height:
        return False
    for x in range(1, count):
        i = s.work[1, x]
        y = x - 1
        while y >= 0 and s.item[LOWEST, s.work[1, y]] < s.item[LOWEST, i]:
            s.work[1, y + 1] = s.work[1, y]
            y -= 1
        s.work[1, y + 1] = i
    need = 0
    for y in range(count):
        need += t.item[SIZE, s.work[1, y]]
        row = s.item[LOWEST, s.work[1, y]]
        above = need
        for x in range(t.first[FIXED_OF, section], t.first[FIXED_OF, section + 1], 2):
            if t.links[x] >= row:
                above += t.links[x + 1]
        if row + above > height:
            explain_section(t, s, y + 1, height - above + 1)
            return True
    return False


@compiled
def propagate(t: Tables, s: State, end: int, marked: int, height: int) -> bool:
    """Follow the queue of items that moved, then examine their sections; False is a failure, with its causes.

    If the trail is full, there are no causes.
    """
    at, fine = 0, True
    while at < end:
        i = s.work[0, at]
        at += 1
        s.item[QUEUED, i] = 0
        if s.numbers[LENGTH] >= s.numbers[LIMIT]:
            s.numbers[FULL] = 1
            fine = False
        if not fine:
            continue
        if at > 4 * t.item.shape[1]:
            for x in range(at, end):
                s.work[0, x - at] = s.work[0, x]
            at, end = 0, end - at
        for x in range(t.first[SECTIONS_OF, i], t.first[SECTIONS_OF, i + 1]):
            section = t.links[x]
            if s.item[MARKED, section] == 0:
                s.item[MARKED, section] = 1
                s.item[LISTED, marked] = section
                marked += 1
        twin = t.item[TWIN, i]
        if twin >= 0 and s.item[ROW, twin] < 0 and s.item[ROW, i] < 0:
            top = s.item[LOWEST, i] + t.item[SIZE, i]
            if s.item[LOWEST, twin] < top:
                lift(t, s, twin, top, ORDERED, i, 0)
                end = enqueue(s, twin, end)
        for x in range(t.first[MEETS, i], t.first[MEETS, i + 1]):
            other = t.links[x]
            if s.item[ROW, other] < 0 and s.item[REFUSED, other] >= 0 and s.item[SUPPORT, other] == i:
                longer = hold(t, s, other, end)
                if longer < 0:
                    # The stack of explanations takes the place of the queue.
                    for y in range(at, end):
                        s.item[QUEUED, s.work[0, y]] = 0
                    explain_fall(t, s, other)
                    at, end, fine = 0, 0, False
                    break
                end = longer
    for x in range(marked):
        section = s.item[LISTED, x]
        s.item[MARKED, section] = 0
        if fine and overfull(t, s, section, height):
            fine = False
    return fine


@compiled
def place(t: Tables, s: State, i: int, level: int, height: int) -> bool:
    """Place item i, whose lowest row is the lowest of all, there: what it meets lies above it."""
    row = s.item[LOWEST, i]
    s.item[ROW, i], s.item[LEVEL, i] = row, level
    s.item[TIME, i] = record(s, i, PLACED, row, 0, level, 0)
    end = enqueue(s, i, 0)
    top = row + t.item[SIZE, i]
    for x in range(t.first[MEETS, i], t.first[MEETS, i + 1]):
        other = t.links[x]
        if s.item[ROW, other] < 0 and s.item[LOWEST, other] < top:
            lift(t, s, other, top, LIFTED, row, level)
            end = enqueue(s, other, end)
    return propagate(t, s, end, 0, height)


@compiled
def postpone(t: Tables, s: State, i: int, level: int, height: int) -> bool:
    """Item i does not lie at its lowest row."""
    record(s, i, POSTPONED, 0, s.item[REFUSED, i], s.item[REFUSED_LEVEL, i], s.item[SUPPORT, i])
    s.item[REFUSED, i], s.item[REFUSED_LEVEL, i] = s.item[LOWEST, i], level
    end = hold(t, s, i, 0)
    if end < 0:
        explain_fall(t, s, i)
        return False
    return propagate(t, s, end, 0, height)
