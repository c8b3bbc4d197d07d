"""Times when a buffer holds nothing that was written, or nothing that will be read: cases of a switch.

One case runs. If a buffer is first written in one of them, it holds nothing in the others until they write it; if it
is last read in one of them, nobody needs what it holds in the others after their own last use:

    write c
    switch n {
      case 0 { compute; write b; read c }        b is live from the write, c to the read
      case 1 { compute; read c; compute }        b is not live, c to the read
      case 2 { compute }                         b is not live; c is neither, as it is not read after the switch
      case 3 { write b; read b }                 b is live, c is not
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schedc.ir.program import Op, Switch, numbered, size, walk

Span = tuple[int, int]


def dead_in_cases(switches: Sequence[list[Span]], parts: Sequence[Span]) -> list[Span]:
    """Times first..end-1; `parts` are the operations and loops (first..end-1) in which the buffer must be live."""
    begin, last = min(first for first, _ in parts), max(end for _, end in parts) - 1
    dead: list[Span] = []
    for switch in switches:
        first_case = _holding(switch, begin)
        last_case = _holding(switch, last)
        for case in switch:
            inside = [part for part in parts if part[0] < case[1] and case[0] < part[1]]
            if first_case is not None and case != first_case:
                dead.append((case[0], min((first for first, _ in inside), default=case[1])))
            if last_case is not None and case != last_case:
                dead.append((max((end for _, end in inside), default=case[0]), case[1]))
    return [(first, end) for first, end in dead if first < end]


def cases_of_switches(body: tuple[Op, ...]) -> Iterator[list[Span]]:
    """The cases (first..end-1) of each switch."""
    for index, op in enumerate(walk(body)):
        if isinstance(op, Switch):
            yield [(number, number + size(case)) for number, case in numbered(op.body, index + 1)]


def _holding(cases: list[Span], time: int) -> Span | None:
    return next((case for case in cases if case[0] <= time < case[1]), None)
