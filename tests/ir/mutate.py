"""Single faults put into a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedc.ir.program import Op, Program, Signal, Start, Wait, walk


def removals(program: Program) -> Iterator[tuple[Op, Program]]:
    """The program without one start, wait or signal, for every one of them."""
    for index, op in enumerate(walk(program.body)):
        if isinstance(op, (Start, Wait, Signal)):
            body, _ = _without(program.body, index, 0)
            yield op, replace(program, body=body)


def _without(ops: tuple[Op, ...], index: int, at: int) -> tuple[tuple[Op, ...], int]:
    kept: list[Op] = []
    for op in ops:
        here, at = at, at + 1
        if hasattr(op, "body"):
            body, at = _without(op.body, index, at)
            op = replace(op, body=body)  # type: ignore[call-arg]
        if here != index:
            kept.append(op)
    return tuple(kept), at
