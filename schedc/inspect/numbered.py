"""The operations of a program by their number in the order of `walk`: phase, guards, lines of the text and kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from schedc.ir.expr import Element, Expr, leaves
from schedc.ir.program import (
    BLOCKS,
    Compute,
    Loop,
    Op,
    Phase,
    Program,
    RemoteStart,
    SetScalar,
    Start,
    Switch,
    When,
    scalars_set,
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
    program: Program
    ops: tuple[Placed, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", tuple(_placed(self.program.body, "", ())))

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """Of program.ir, from 1."""
        return tuple(operation_lines(self.program))

    @cached_property
    def kernel_lines(self) -> tuple[int, ...]:
        """Of kernel.py, from 1."""
        from schedc.backends.pallas.emit.kernel import emit

        return tuple(line for line, _ in emit(self.program).operations)

    @cached_property
    def computed(self) -> frozenset[str]:
        """The scalar arrays that something in the program sets."""
        return frozenset(array for placed in self.ops for array in scalars_set(placed.op))

    def text(self, number: int) -> str:
        return print_op(self.ops[number].op).removesuffix(" {")

    def needs_scalars(self, number: int) -> tuple[str, ...]:
        """The arrays set in the program that decide whether the operation is executed, or on what."""
        placed = self.ops[number]
        exprs = [*_own(placed.op), *(expr for op in placed.around for expr in _own(op))]
        arrays = (leaf.array for expr in exprs for leaf in leaves(expr) if isinstance(leaf, Element))
        return tuple(dict.fromkeys(array for array in arrays if array in self.computed))


def transfer_name(op: Start | RemoteStart) -> str:
    return f"{op.source.storage} -> {op.target.storage}"


def _placed(ops: tuple[Op, ...], phase: str, around: tuple[Op, ...]) -> Iterator[Placed]:
    for op in ops:
        name = op.name if isinstance(op, Phase) else phase
        yield Placed(op, name, around)
        if isinstance(op, BLOCKS):
            yield from _placed(op.body, name, (*around, op))


def _own(op: Op) -> Iterator[Expr]:
    """The expressions of an operation, less its body."""
    match op:
        case Start(source, target, semaphore):
            yield from (source.offset, source.slot, target.offset, target.slot, semaphore.index)
        case RemoteStart(source, target, peer, sent, arrived):
            yield from (source.offset, source.slot, target.offset, target.slot, peer, sent.index, arrived.index)
        case When(conditions):
            for condition in conditions:
                yield from (condition.left, condition.right)
        case Loop(_, trips):
            yield trips
        case Switch(selector):
            yield selector
        case SetScalar(_, index, value):
            yield from (index, value)
        case Compute(_, operands):
            for operand in operands:
                yield from (operand.region.offset, operand.region.slot)
