"""Memory cut into cells: runs of rows that every access takes together, so that one tag stands for all of them.

    pool rows     0       8       16      24
    tile          [ slot 0       ][ slot 1 ...
    transfer of 8 [       ]
    cells         |  0    |  1    |  2 ...

A transfer carries the cuts inside its source to its target and back, so that it copies whole cells.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from schedc.ir.execute.steps import Copy, Rows, Step, Work
from schedc.ir.program import Program

Space = tuple[str, str]
"""What is addressed from 0: a pool, an array, or a buffer that has no address yet."""


class Cells(NamedTuple):
    """Cells `first` to `end` of the memory; `own` is the first of them where no two buffers share memory."""

    first: int
    end: int
    own: int


class Layout(NamedTuple):
    """Where everything is; the same on every device."""

    cells: dict[Rows, Cells]
    """Of every region that some step accesses, and of all of each array."""
    size: int
    own_size: int
    rows: list[int]
    """The rows of each cell."""

    def row(self, rows: Rows, cell: int) -> int:
        """The first row of the storage in a cell of `rows`."""
        return rows.first + sum(self.rows[self.cells[rows].first : cell])


def lay_out(program: Program, steps: Iterable[Step]) -> Layout:
    places = _places(program)
    arrays = [Rows(array.name, 0, array.rows) for array in program.arrays]
    regions, transfers = _accesses(steps)
    regions |= dict.fromkeys(arrays)
    cuts: dict[Space, set[int]] = defaultdict(set)
    for storage, first, end in [*regions, *(Rows(name, 0, rows) for name, (_, _, rows) in places.items())]:
        space, base, _ = places[storage]
        cuts[space] |= {base + first, base + end}
    _carry(transfers, places, cuts)
    numbers, lengths = _number(cuts)
    own, own_size = {}, 0
    for storage, (space, base, rows) in places.items():
        own[storage] = own_size - numbers[space][base]
        own_size += numbers[space][base + rows] - numbers[space][base]
    cells = {}
    for region in regions:
        space, base, _ = places[region.storage]
        first, end = (numbers[space][base + row] for row in (region.first, region.end))
        cells[region] = Cells(first, end, first + own[region.storage])
    return Layout(cells, len(lengths), own_size, lengths)


def _places(program: Program) -> dict[str, tuple[Space, int, int]]:
    """Of each storage the space, its first row in there, and its rows."""
    places: dict[str, tuple[Space, int, int]] = {}
    for array in program.arrays:
        places[array.name] = ("array", array.name), 0, array.rows
    for buffer in program.buffers:
        space = ("buffer", buffer.name) if buffer.address is None else ("pool", buffer.pool)
        places[buffer.name] = space, buffer.address or 0, buffer.rows * buffer.slots
    return places


def _accesses(steps: Iterable[Step]) -> tuple[dict[Rows, None], dict[tuple[Rows, Rows], None]]:
    regions: dict[Rows, None] = {}
    transfers: dict[tuple[Rows, Rows], None] = {}
    for step in steps:
        match step:
            case Work(reads, writes):
                for rows in reads:
                    regions[rows] = None
                for rows in writes:
                    regions[rows] = None
            case Copy(source, target):
                regions[source] = regions[target] = transfers[source, target] = None
    return regions, transfers


def _carry(
    transfers: Iterable[tuple[Rows, Rows]], places: dict[str, tuple[Space, int, int]], cuts: dict[Space, set[int]]
) -> None:
    """Cut either end of each transfer where the other is cut, until nothing changes."""
    ends = []
    for source, target in transfers:
        (read, base, _), (written, offset, _) = places[source.storage], places[target.storage]
        ends.append((read, base + source.first, written, offset + target.first, source.end - source.first))
    changed = set(cuts)
    while changed:
        ordered = {space: sorted(of_space) for space, of_space in cuts.items()}
        before, changed = changed, set()
        for read, first, written, start, length in ends:
            if read in before or written in before:
                for a, at, b, to in ((read, first, written, start), (written, start, read, first)):
                    inner = ordered[a][bisect_right(ordered[a], at) : bisect_left(ordered[a], at + length)]
                    if new := {cut - at + to for cut in inner} - cuts[b]:
                        cuts[b] |= new
                        changed.add(b)


def _number(cuts: dict[Space, set[int]]) -> tuple[dict[Space, dict[int, int]], list[int]]:
    """The cell that begins at each cut, and the rows of each cell."""
    numbers: dict[Space, dict[int, int]] = {}
    lengths: list[int] = []
    for space, of_space in cuts.items():
        ordered = sorted(of_space)
        numbers[space] = {cut: len(lengths) + i for i, cut in enumerate(ordered)}
        lengths += [end - first for first, end in pairwise(ordered)]
    return numbers, lengths
