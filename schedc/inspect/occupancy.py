"""What a transfer brings into VMEM, from its start to the last computation that reads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from schedc.inspect.record import Step, Touched


@dataclass(frozen=True, slots=True)
class Fill:
    """A transfer of the HBM: the step that starts it, the one that waits for it, and where to it goes."""

    transfer: int
    started: int
    wait: int | None
    place: Touched


@dataclass(slots=True)
class Occupant:
    """Rows of a buffer that a transfer fills; steps are indices of executions, None where there is none."""

    transfer: int
    place: Touched
    started: int
    wait: int | None
    first_use: int | None = None
    last_use: int | None = None


def occupants(
    fills: Sequence[Fill],
    steps: Sequence[Step],
    buffers: Collection[str],
    computing: Collection[int],
) -> tuple[Occupant, ...]:
    """Those of `fills` that go into `buffers`, in the order of execution.

    Reads count from the wait on. Something that is written over an occupant's first row ends it: what is read after
    that is something else. `computing` are the operations that read and write by computing; a transfer from VMEM reads
    too.
    """
    filling = {fill.started: fill for fill in fills}
    here: dict[str, list[Occupant]] = {name: [] for name in buffers}
    found = []
    for number, step in enumerate(steps):
        for touched in step.touched:
            if touched.storage not in here:
                continue
            inside = here[touched.storage]
            if touched.reads:
                for occupant in inside:
                    at = occupant.place
                    met = touched.row < at.end and at.row < touched.end
                    if met and (occupant.wait is not None and number > occupant.wait):
                        occupant.first_use = number if occupant.first_use is None else occupant.first_use
                        occupant.last_use = number
            overwrites = touched.writes and not touched.reads
            if overwrites and (step.op in computing or number in filling):
                here[touched.storage] = [o for o in inside if not touched.row <= o.place.row < touched.end]
        if number in filling:
            fill = filling[number]
            if fill.place.storage in here:
                occupant = Occupant(fill.transfer, fill.place, number, fill.wait)
                here[fill.place.storage].append(occupant)
                found.append(occupant)
    return tuple(found)
