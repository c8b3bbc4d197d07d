"""The dumb twin of the proof: run a program over small tagged memory with transfers at random times.

Every row that is written gets a tag of its own, and a transfer copies tags. The program's meaning is
a reference run in which each transfer happens at once when it starts, the lowest device that can go
on does, and no two buffers share memory; its reads are recorded. A timed run then lets the devices
run at random speeds and each transfer read its source, write its target and add to its semaphores at
random times, in pieces, between its start and the wait that cannot do without it, over the pool rows
that were allocated, and compares. A program that is right reads the same under every timing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedc.ir.execute.fault import Fault
from schedc.ir.execute.reference import unfold
from schedc.ir.execute.timed import TimedRun
from schedc.ir.execute.timing import timing
from schedc.ir.execute.trace import Trace
from schedc.ir.program import Program

__all__ = ["Fault", "Trace", "execute", "run", "unfold"]


def execute(program: Program, scalars: Mapping[str, Sequence[int]], seed: int) -> list[Fault]:
    """The faults of one run with random timing; `scalars` gives the input arrays."""
    return run(unfold(program, scalars, seed), seed)


def run(trace: Trace, seed: int) -> list[Fault]:
    """The faults of one timed run: the first seeds are extremes of timing, the others random.

    Where the reference run already has faults there is nothing to compare with, so they are the answer.
    """
    if trace.faults:
        return list(trace.faults)
    return TimedRun(trace, timing(seed, len(trace.steps))).faults()
