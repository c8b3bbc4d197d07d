"""What a mixer or a feed-forward gives to the step graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from schedc.ir.expr import Const, Counter, Expr, as_expr
from schedc.ir.program import Attribute, Compute, Loop, Op, Operand, Region
from schedc.lower.graph import PER_WORD, Declarations, Each, Grain, Phase, Prefetch, Stream
from schedc.weights.layout import VectorItem

WORK = "work"
"""The pool of activations."""

STREAM = "stream"
"""The pool of what is only read: streamed weights, table rows. The compiler keeps the order of starts into one pool."""

CACHE = "cache"
"""The pool of cache tiles. They lie at dynamic addresses, and in the pool of the activations the compiler would have to
assume that every activation stored might be one of them."""


@dataclass(frozen=True)
class Place:
    """Where a block stands: `suffix` makes its names unique, `layers` are its layers, `counter` their loop.

    `part` stands before the names of a part of it, such as its shared experts.
    """

    suffix: str
    counter: str
    layers: tuple[int, ...]
    part: str = ""

    def named(self, name: str) -> str:
        return self.part + name + self.suffix


class Part(Protocol):
    """A mixer or feed-forward of one block: reads the operand `input`, leaves f32 in `output`.

    `partial`: what it leaves is this device's part of a sum over all devices. The block adds `output_bias` to the sum.
    The reference calls what is summed `meaning`.
    """

    output: str
    meaning: str
    output_bias: str | None
    partial: bool

    def matrices(self) -> tuple[Stream, ...]: ...
    def vectors(self) -> tuple[VectorItem, ...]: ...
    def declarations(self, grain: Grain) -> Declarations: ...
    def phases(self, grain: Grain) -> tuple[Phase | Each, ...]: ...
    def prefetches(self, grain: Grain) -> tuple[Prefetch, ...]: ...
    def begin(self, grain: Grain) -> tuple[Op, ...]:
        """Once, before the first layer."""
        ...

    def end(self, grain: Grain) -> tuple[Op, ...]:
        """At the end of the layer."""
        ...


def operand_words(rows: int, dtype: str) -> int:
    """Word rows of a panel of a dot's left side (bf16 always has 16 rows: two to a word)."""
    return rows if PER_WORD[dtype] == 1 else 8


Access = Literal["read", "write", "update"]
Operands = Mapping[str, Region | None]


def compute(
    operation: str,
    reads: Operands | None = None,
    writes: Operands | None = None,
    updates: Operands | None = None,
    scalars: Mapping[str, Expr | int | Sequence[Expr]] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    sets: Mapping[str, str] | None = None,
    **more: Attribute,
) -> Compute:
    """A computation; operands that are None are left out, a list of scalars becomes `name.0`, `name.1`, …

    Attributes are given by keyword, or as a mapping where many computations share them.
    """
    accesses: tuple[tuple[Access, Operands | None], ...] = (("read", reads), ("write", writes), ("update", updates))
    operands = tuple(
        Operand(name, access, region)
        for access, regions in accesses
        for name, region in (regions or {}).items()
        if region is not None
    )
    arguments: list[tuple[str, Expr]] = []
    for name, value in (scalars or {}).items():
        if isinstance(value, Sequence):
            arguments += [(f"{name}.{index}", item) for index, item in enumerate(value)]
        else:
            arguments.append((name, as_expr(value)))
    return Compute(
        operation,
        operands,
        tuple(arguments),
        tuple({**(attributes or {}), **more}.items()),
        tuple((sets or {}).items()),
    )


def each_row(rows: int, body) -> tuple[Op, ...]:
    """`body(row)` for every row, as an unrolled loop; a single row needs none."""
    return body(Const(0)) if rows == 1 else (Loop("r", Const(rows), body(Counter("r")), unroll=True),)
