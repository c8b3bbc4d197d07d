"""Every program that lacks one operation of another."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.ir.program import Await, Barrier, Op, Program, RemoteStart, Signal, Start, Wait
from tests.ir.mutation.edit import exchanged, operations


def removals(program: Program) -> Iterator[tuple[Op, Program]]:
    """The program without one start, wait, signal or barrier, for every one of them."""
    for path, op in operations(program, Start, RemoteStart, Wait, Signal, Await, Barrier):
        yield op, exchanged(program, path)
