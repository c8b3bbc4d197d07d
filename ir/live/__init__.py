"""Live ranges of buffers, in operations of the program's text order.

A buffer is live from the first operation that writes it (the start of the transfer, or the compute)
to the last that needs it: a read, or the wait of a transfer from or to it. If an iteration of a loop
may read what an earlier one left, the buffer is live in the whole loop. So is one that is used after a
loop of which some iterations write only a part of it, or nothing. One that peers write is live in the
whole program: they write when they come to it.

Out of these ranges are cut the times when nobody can read what the buffer holds: before it is written as a whole
again (`redefined`), and in the cases of a switch that come neither from where it is written nor to where it is read
(`alternatives`). What is left can be several spans:

    op   0 | compute (write b)          b
    op   1 | loop 8 {                   b
    op   2 |   compute (read b)         b
    op   3 |   compute                  .
    op   4 |   compute (write b)        b
    op   5 |   compute                  b     the next iteration reads it
           | }
    op   6 | compute (read b)           b
"""

from __future__ import annotations

from dataclasses import dataclass

from schedc.ir.live.alternatives import cases_of_switches, dead_in_cases
from schedc.ir.live.extent import extents, touches
from schedc.ir.live.redefined import dead_before_definitions
from schedc.ir.program import Program

__all__ = ["LiveRange", "live_ranges"]

Span = tuple[int, int]


@dataclass(frozen=True)
class LiveRange:
    buffer: str
    spans: tuple[Span, ...]
    """Operations first..end-1 in the order of `program.walk`; in order, with gaps between them."""

    @property
    def first(self) -> int:
        return self.spans[0][0]

    @property
    def last(self) -> int:
        """The last operation itself."""
        return self.spans[-1][1] - 1


def live_ranges(program: Program) -> tuple[LiveRange, ...]:
    """The live range of every buffer that is used, in the order of declaration."""
    touched = touches(program)
    found = extents(program, touched)
    dead = dead_before_definitions(program, touched)
    ranges, switches = [], list(cases_of_switches(program.body))
    for buffer in program.buffers:
        extent = found.get(buffer.name)
        if extent is None:
            continue
        if extent.by_peers:
            ranges.append(LiveRange(buffer.name, ((0, program.size),)))
            continue
        gaps = [*dead.get(buffer.name, ()), *dead_in_cases(switches, extent.parts)]
        ranges.append(LiveRange(buffer.name, _cut((extent.first, extent.last + 1), gaps)))
    return tuple(ranges)


def _cut(span: Span, gaps: list[Span]) -> tuple[Span, ...]:
    """What is left of the span without the gaps."""
    spans = []
    at, end = span
    for first, stop in sorted(gaps):
        if first > at:
            spans.append((at, min(first, end)))
        at = max(at, stop)
        if at >= end:
            break
    if at < end:
        spans.append((at, end))
    return tuple(spans)
