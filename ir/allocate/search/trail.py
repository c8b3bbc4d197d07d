"""What happened in a branch, in order, so that it can be taken back and explained."""

from __future__ import annotations

from schedc.ir.allocate.search.jit import compiled
from schedc.ir.allocate.search.layout import (
    ALIGN,
    BEFORE,
    BLOCKED,
    ENTRY,
    FAILURE,
    FIRST,
    KIND,
    LENGTH,
    LOWEST,
    OBSTACLES,
    PENDING,
    PLACED,
    POSTPONED,
    REFUSED,
    REFUSED_LEVEL,
    ROW,
    SECOND,
    SIZE,
    SUBJECT,
    SUPPORT,
    THIRD,
    VALUE,
    State,
    Tables,
)


@compiled
def record(s: State, subject: int, kind: int, value: int, first: int, second: int, third: int) -> int:
    """Add an entry; returns its number."""
    entry = s.numbers[LENGTH]
    s.trail[SUBJECT, entry] = subject
    s.trail[KIND, entry] = kind
    s.trail[VALUE, entry] = value
    s.trail[BEFORE, entry] = s.item[ENTRY, subject]
    s.trail[FIRST, entry] = first
    s.trail[SECOND, entry] = second
    s.trail[THIRD, entry] = third
    s.trail[FAILURE, entry] = s.trail[PENDING, entry] = 0
    s.numbers[LENGTH] = entry + 1
    return entry


@compiled
def lift(t: Tables, s: State, i: int, row: int, kind: int, first: int, second: int) -> None:
    """Item i lies at `row` or above, so at the next place that is aligned and clear of fixed items."""
    align, size = t.item[ALIGN, i], t.item[SIZE, i]
    lowest = (row + align - 1) // align * align
    s.item[ENTRY, i] = record(s, i, kind, lowest, first, second, 0)
    for x in range(t.first[OBSTACLES, i], t.first[OBSTACLES, i + 1], 2):
        if t.links[x] < lowest + size and lowest < t.links[x + 1]:
            lowest = (t.links[x + 1] + align - 1) // align * align
            s.item[ENTRY, i] = record(s, i, BLOCKED, lowest, t.links[x], 0, 0)
    s.item[LOWEST, i] = lowest


@compiled
def take_back(s: State, length: int) -> None:
    """Undo all entries from number `length` on."""
    entry = s.numbers[LENGTH]
    while entry > length:
        entry -= 1
        i, kind = s.trail[SUBJECT, entry], s.trail[KIND, entry]
        if kind == PLACED:
            s.item[ROW, i] = -1
        elif kind == POSTPONED:
            s.item[REFUSED, i] = s.trail[FIRST, entry]
            s.item[REFUSED_LEVEL, i] = s.trail[SECOND, entry]
            s.item[SUPPORT, i] = s.trail[THIRD, entry]
        else:
            before = s.trail[BEFORE, entry]
            s.item[ENTRY, i] = before
            s.item[LOWEST, i] = s.trail[VALUE, before] if before >= 0 else 0
    s.numbers[LENGTH] = length
