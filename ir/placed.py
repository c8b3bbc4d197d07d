"""Operations with what stands around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedc.ir.program import BLOCKS, Op, Phase


@dataclass(frozen=True)
class Placed:
    """An operation, the innermost phase it is in (empty: none), and the blocks around it, outermost first.

    A phase counts as being in itself.
    """

    op: Op
    phase: str
    around: tuple[Op, ...]


def placed(ops: tuple[Op, ...], phase: str = "", around: tuple[Op, ...] = ()) -> Iterator[Placed]:
    """Every operation, in the order of `walk`."""
    for op in ops:
        name = op.name if isinstance(op, Phase) else phase
        yield Placed(op, name, around)
        if isinstance(op, BLOCKS):
            yield from placed(op.body, name, (*around, op))
