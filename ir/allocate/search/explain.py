"""Which choices made a branch fail: lower bounds of rows, traced back through the trail.

"Item i lies at row r or above" is explained by the first entry of i that said so. Its reasons are a choice,
or such statements about other items from before that entry, which are explained in turn.
"""

from __future__ import annotations

from schedc.ir.allocate.search.jit import compiled
from schedc.ir.allocate.search.layout import (
    ALIGN,
    ASKED,
    BEFORE,
    BITS,
    BLOCKED,
    ENTRY,
    FAILURE,
    FAILURES,
    FAR,
    FIRST,
    HELD,
    KIND,
    LEVEL,
    LIFTED,
    MEETS,
    PENDING,
    REFUSED,
    REFUSED_LEVEL,
    ROW,
    SECOND,
    SIZE,
    SUBJECT,
    TIME,
    VALUE,
    State,
    Tables,
)


@compiled
def blame(s: State, level: int) -> None:
    """Count a choice among the causes of the present failure."""
    s.causes[-1, level // BITS] |= 1 << (level % BITS)


@compiled
def begin(s: State) -> None:
    s.numbers[FAILURES] += 1


@compiled
def ask(s: State, i: int, row: int, depth: int) -> int:
    """Put "item i lies at `row` or above" on the stack, as the first entry that says so; returns the stack's depth.

    What an entry says is explained by earlier ones only, so nothing can come to explain itself.
    """
    if row <= 0:
        return depth
    entry = s.item[ENTRY, i]
    while s.trail[BEFORE, entry] >= 0 and s.trail[VALUE, s.trail[BEFORE, entry]] >= row:
        entry = s.trail[BEFORE, entry]
    if s.trail[FAILURE, entry] == s.numbers[FAILURES] and s.trail[ASKED, entry] >= row:
        return depth
    s.trail[FAILURE, entry] = s.numbers[FAILURES]
    s.trail[ASKED, entry] = row
    if s.trail[PENDING, entry]:
        return depth
    s.trail[PENDING, entry] = 1
    s.work[0, depth] = entry
    return depth + 1


@compiled
def ask_for_no_support(t: Tables, s: State, i: int, row: int, refused: int, entry: int, depth: int) -> int:
    """Why no item that takes some of the rows that i was refused ends below `row`, as things were before an entry."""
    clear = refused + t.item[SIZE, i]
    for x in range(t.first[MEETS, i], t.first[MEETS, i + 1]):
        other = t.links[x]
        need = min(row - t.item[SIZE, other], clear)
        placed = s.item[ROW, other] >= 0 and s.item[TIME, other] < entry
        if placed and s.item[ROW, other] + t.item[SIZE, other] <= refused:
            blame(s, s.item[LEVEL, other])
        else:
            depth = ask(s, other, need, depth)
    return depth


@compiled
def explain(t: Tables, s: State, depth: int) -> None:
    """Blame the choices behind all that is on the stack."""
    while depth > 0:
        depth -= 1
        entry = s.work[0, depth]
        s.trail[PENDING, entry] = 0
        i, row = s.trail[SUBJECT, entry], s.trail[ASKED, entry]
        kind, first = s.trail[KIND, entry], s.trail[FIRST, entry]
        if kind == LIFTED:
            blame(s, s.trail[SECOND, entry])
            depth = ask(s, i, first - t.item[SIZE, i] + 1, depth)
        elif kind == BLOCKED:
            depth = ask(s, i, first - t.item[SIZE, i] + 1, depth)
        elif kind == HELD:
            blame(s, s.trail[SECOND, entry])
            align = t.item[ALIGN, i]
            raw = (row + align - 1) // align * align - align + 1
            if raw > first + 1:
                depth = ask_for_no_support(t, s, i, raw, first, entry, depth)
        else:
            align = t.item[ALIGN, i]
            raw = (row + align - 1) // align * align - align + 1
            depth = ask(s, first, raw - t.item[SIZE, first], depth)


@compiled
def explain_row(t: Tables, s: State, i: int, row: int) -> None:
    """Why item i lies at `row` or above."""
    begin(s)
    explain(t, s, ask(s, i, row, 0))


@compiled
def explain_section(t: Tables, s: State, count: int, row: int) -> None:
    """Why the first `count` items of work row 1 lie at `row` or above."""
    begin(s)
    depth = 0
    for x in range(count):
        depth = ask(s, s.work[1, x], row, depth)
    explain(t, s, depth)


@compiled
def explain_fall(t: Tables, s: State, i: int) -> None:
    """Why nothing can keep up the postponed item i."""
    begin(s)
    blame(s, s.item[REFUSED_LEVEL, i])
    explain(t, s, ask_for_no_support(t, s, i, FAR, s.item[REFUSED, i], FAR, 0))
