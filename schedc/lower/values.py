"""What the results of phases mean: which named value of the reference a buffer holds, and how it lies there.

A phase says so in its `values`, where a mixer or feed-forward makes it; the names are those that the reference notes
(`schedc/reference/notes.py`). Nothing of it reaches a program: only `schedc verify --dump` copies buffers out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Literal

from schedc.weights.layout import Columns, Members

LANES = 128

Stored = Literal["f32", "bf16", "i32"]


@dataclass(frozen=True)
class Piece:
    """Columns `first` … `first + width` of a value [rows, columns].

    Column `first + i` of row r lies in lane (lane + i) % 128 of the buffer's row
    at + r · row_step + (lane + i) // 128 · panel_step; if it is `turned`, in lane r of row at + i. On device d the
    columns begin (d // every) % ring · step further on; those past the value's last are padding.
    """

    first: int
    width: int
    at: int
    row_step: int
    panel_step: int
    lane: int = 0
    turned: bool = False
    step: int = 0
    every: int = 1
    ring: int = 1


@dataclass(frozen=True)
class Value:
    """`meaning`: its name in the reference. bf16: rows of words hold two rows each, the even one in the low halves.

    `summed`: each device has a part of a sum, else each that has a column has all of it. `divided_by`: where in the
    buffer the divisors of all columns lie. With `members` it is one of each, such as of experts, at the place of the
    one that the phase is at. `begins`: what the same value is before the first member, if there is none.
    """

    meaning: str
    buffer: str
    pieces: tuple[Piece, ...]
    stored: Stored = "f32"
    summed: bool = False
    divided_by: tuple[Piece, ...] = ()
    members: Members | None = None
    begins: bool = False


def piece(
    first: int,
    width: int,
    at: int,
    row_step: int,
    panel_step: int,
    lane: int = 0,
    /,
    *,
    step: int = 0,
    every: int = 1,
    ring: int = 1,
) -> Piece:
    """One that is not turned; the fields of a shard (`Split.shard`) by keyword."""
    return Piece(first, width, at, row_step, panel_step, lane, step=step, every=every, ring=ring)


KEPT = Value("kept", "", ())
"""What a layer keeps in HBM of the tokens, read when the step has ended."""

LOGITS = Value("logits", "", ())


def panels(meaning: str, buffer: str, width: int, rows: int, *, summed: bool = False, **shard: int) -> Value:
    """f32[panels][rows, 128]."""
    return Value(meaning, buffer, (piece(0, width, 0, 1, rows, **shard),), summed=summed)


def operand_height(rows: int, dtype: str) -> int:
    """Rows of a panel of a dot's left side: bf16 always has 16."""
    return rows if dtype == "f32" else 16


def operand(
    meaning: str, buffer: str, width: int, rows: int, dtype: str, members: Members | None = None, /, **shard: int
) -> Value:
    """The left side of a dot."""
    whole = piece(0, width, 0, 1, operand_height(rows, dtype), **shard)
    return Value(meaning, buffer, (whole,), "f32" if dtype == "f32" else "bf16", members=members)


def operand_heads(meaning: str, buffer: str, heads: int, width: int, rows: int, dtype: str, /, **shard: int) -> Value:
    """The left side of a dot a head, each in whole panels."""
    height = operand_height(rows, dtype)
    pieces = by_head(heads, width, ceil(width / LANES) * height, 1, height, **shard)
    return Value(meaning, buffer, pieces, "f32" if dtype == "f32" else "bf16")


def by_head(
    heads: int, width: int, head_step: int, row_step: int, panel_step: int, at: int = 0, /, **shard: int
) -> tuple[Piece, ...]:
    """`width` columns of every head; those of the next are `head_step` rows further on."""
    return tuple(
        piece(head * width, width, at + head * head_step, row_step, panel_step, **shard) for head in range(heads)
    )


def of_columns(
    columns: Iterable[Columns], buffer: str, rows: int, summed: bool, members: Members | None
) -> tuple[Value, ...]:
    """What a projection gives: by weight, the columns that the device has of it."""
    found: dict[str, list[Piece]] = {}
    place = 0
    for block in columns:
        shard = {"step": block.step, "every": block.every, "ring": block.ring}
        at, lane = place // LANES * rows, place % LANES
        part = piece(block.start, block.count, at, 1, rows, lane, **shard)
        found.setdefault(block.weight, []).append(part)
        place += block.width
    return tuple(
        Value(weight, buffer, tuple(pieces), summed=summed, members=members) for weight, pieces in found.items()
    )
