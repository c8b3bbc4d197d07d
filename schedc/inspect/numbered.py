"""The operations of a program by their number in the order of `walk`: phase, guards, lines of the text and kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from schedc.ir.placed import Placed, placed
from schedc.ir.program import Program
from schedc.ir.text_print import operation_lines, print_op


@dataclass(frozen=True, eq=False)
class Numbered:
    """`written` are the lines of the operations in a file of the user's, None: those of the program's text form."""

    program: Program
    written: tuple[int, ...] | None = None
    ops: tuple[Placed, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", tuple(placed(self.program.body)))

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
