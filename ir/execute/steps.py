"""What a device executes when loops, guards and addresses are resolved. Semaphores are numbers, see `numbers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schedc.ir.program import Op, Program
from schedc.ir.text_print import print_op


class Rows(NamedTuple):
    """Rows `first` to `end` of a storage, counted from its own first row."""

    storage: str
    first: int
    end: int


class Work(NamedTuple):
    """A computation: all its reads, then all its writes."""

    reads: tuple[Rows, ...]
    writes: tuple[Rows, ...]


class Copy(NamedTuple):
    """A transfer to device `peer`, which is the own rank if it is local; only a remote one has `sent`."""

    source: Rows
    target: Rows
    peer: int
    sent: int | None
    arrived: int


class Give(NamedTuple):
    """Add to a semaphore of device `peer`."""

    semaphore: int
    amount: int
    peer: int


class Take(NamedTuple):
    """Take from an own semaphore, blocking until it holds that many."""

    semaphore: int
    amount: int


class Meet(NamedTuple):
    """The barrier with this number, from 1."""

    number: int


Step = Work | Copy | Give | Take | Meet


class Place(NamedTuple):
    """Which operation a step is of, in which iteration."""

    op: Op
    counters: Mapping[str, int]

    def __str__(self) -> str:
        return f"{print_op(self.op)} with {dict(self.counters)}" if self.counters else print_op(self.op)


def numbers(program: Program) -> dict[str, int]:
    """The number of the first semaphore of each name; the others of that name follow."""
    first, total = {}, 0
    for semaphore in program.semaphores:
        first[semaphore.name] = total
        total += semaphore.count
    return first
