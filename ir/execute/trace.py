"""The program unfolded: the steps of every device over cells of memory, with the tags that each read should see."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from schedc.ir.execute.fault import Fault
from schedc.ir.execute.steps import Give, Meet, Place, Rows, Take, numbers
from schedc.ir.program import Program

NEVER = -1
"""Tag of a cell that was never written."""


class Read(NamedTuple):
    """Cells `first` to `end` and the tags they should hold."""

    first: int
    end: int
    expected: list[int]
    rows: Rows


class Write(NamedTuple):
    """Cells `first` to `end` and the tags they get."""

    first: int
    end: int
    tags: list[int]


class Work(NamedTuple):
    reads: list[Read]
    writes: list[Write]


class Copy(NamedTuple):
    """A transfer to the cells from `target` of device `peer`, the own rank if it is local."""

    source: Read
    target: int
    amount: int
    peer: int
    sent: int | None
    arrived: int


Step = Work | Copy | Give | Take | Meet


class Origin(NamedTuple):
    """Where tags come from: `step` of `device`, or what `storage` holds when the program begins."""

    tag: int
    """The first of them."""
    device: int
    step: int
    storage: str = ""


@dataclass(frozen=True)
class Trace:
    """What one choice of scalars executes. A Trace with faults has no steps that could be run."""

    program: Program
    steps: tuple[list[Step], ...]
    """Of each device, in program order."""
    places: tuple[list[Place], ...]
    memory: tuple[list[int], ...]
    """The tags of each device's cells when the program begins."""
    results: tuple[list[Read], ...]
    """What the arrays of each device should hold when it ends."""
    cell_rows: list[int]
    origins: list[Origin]
    """In the order of their tags."""
    faults: tuple[Fault, ...]
    """What is wrong whatever the timing."""

    def place(self, device: int, step: int) -> str:
        places = self.places[device]
        return str(places[step]) if step < len(places) else "the end"

    def origin(self, tag: int) -> str:
        if tag == NEVER:
            return "nothing"
        _, device, step, storage = self.origins[bisect_right(self.origins, tag, key=lambda origin: origin.tag) - 1]
        what = f"the first contents of {storage}" if storage else f"what step {step} wrote"
        return f"{what} on device {device}" if self.program.devices > 1 else what

    def row(self, read: Read, cell: int) -> int:
        """The row of the storage that a cell of `read` begins with."""
        return read.rows.first + sum(self.cell_rows[read.first : cell])

    def semaphore(self, number: int) -> str:
        name, first = max(((n, f) for n, f in numbers(self.program).items() if f <= number), key=lambda item: item[1])
        return f"{name}[{number - first}]"
