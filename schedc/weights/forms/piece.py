"""What a form is: how to cut its array into pieces, fill one, and read the weights back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from schedc.weights.layout import Members
from schedc.weights.source import WeightSource

PIECE_ROWS = 1 << 16
"""A piece has about this many word rows (32 MiB), so that packing needs little memory and resumes close by."""

L = TypeVar("L")


@dataclass(frozen=True)
class Piece:
    """Word rows of an array that are filled together; `build` gives `int32[rows, 128]`."""

    rows: int
    build: Callable[[WeightSource], np.ndarray]


@dataclass(frozen=True)
class Form(Generic[L]):
    """`pieces` in order cover the array; `unpack` gives back the weights by their full name (f32, as rounded)."""

    name: str
    pieces: Callable[[L], Iterator[Piece]]
    unpack: Callable[[L, np.ndarray], dict[str, np.ndarray]]


def ranges(count: int, rows_each: int) -> Iterator[tuple[int, int]]:
    """0 … count in ranges of about PIECE_ROWS word rows, when one of `count` takes `rows_each`."""
    step = max(PIECE_ROWS // rows_each, 1)
    for start in range(0, count, step):
        yield start, min(start + step, count)


@dataclass(frozen=True)
class Where:
    """Which matrix or block of vectors of a layout: that of `layer` (None: of the model), of one member of it."""

    layer: int | None
    member: int | None = None
    absent: bool = False
    """It stands for a member past the last one: zeros."""

    def name(self, weight: str) -> str:
        """The full name of a weight."""
        weight = weight if self.member is None else weight.replace("*", str(self.member))
        return weight if self.layer is None else f"layers.{self.layer}.{weight}"


def places_of(layers: tuple[int, ...], members: tuple[Members, ...]) -> Iterator[Where]:
    """In the order in which they lie."""
    for layer in layers or (None,):
        for part in members:
            for member in range(part.start, part.start + part.count):
                yield Where(layer, member, member >= part.of)
        if not members:
            yield Where(layer)
