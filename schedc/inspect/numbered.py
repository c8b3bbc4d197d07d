"""The operations of a program by their number in the order of `walk`: phase, guards, lines of the text and kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from schedc.ir.program import (
    BLOCKS,
    Op,
    Phase,
    Program,
    RemoteStart,
    Start,
)
from schedc.ir.text_print import operation_lines, print_op


@dataclass(frozen=True)
class Placed:
    """An operation, the phase it is in (empty: none), and what stands around it, outermost first."""

    op: Op
    phase: str
    around: tuple[Op, ...]


@dataclass(frozen=True, eq=False)
class Numbered:
    """`written` are the lines of the operations in a file of the user's, None: those of the program's text form."""

    program: Program
    written: tuple[int, ...] | None = None
    ops: tuple[Placed, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", tuple(_placed(self.program.body, "", ())))

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """Of program.ir or of the user's file, from 1."""
        return tuple(operation_lines(self.program)) if self.written is None else self.written

    @cached_property
    def kernel_lines(self) -> tuple[int | None, ...]:
        """Of kernel.py, from 1; None if the program has no kernel, because a computation of it is not known."""
        from schedc.backends.pallas.emit.kernel import emit
        from schedc.backends.pallas.errors import EmitError

        try:
            return tuple(line for line, _ in emit(self.program).operations)
        except EmitError:
            return (None,) * len(self.ops)

    def text(self, number: int) -> str:
        return print_op(self.ops[number].op).removesuffix(" {")


def transfer_name(op: Start | RemoteStart) -> str:
    return f"{op.source.storage} -> {op.target.storage}"


def _placed(ops: tuple[Op, ...], phase: str, around: tuple[Op, ...]) -> Iterator[Placed]:
    for op in ops:
        name = op.name if isinstance(op, Phase) else phase
        yield Placed(op, name, around)
        if isinstance(op, BLOCKS):
            yield from _placed(op.body, name, (*around, op))
