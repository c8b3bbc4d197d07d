"""What a form is: how to cut its array into pieces, fill one, and read the weights back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

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


def full_name(layer: int | None, weight: str) -> str:
    return weight if layer is None else f"layers.{layer}.{weight}"


def layers_of(layers: tuple[int, ...]) -> tuple[int | None, ...]:
    """The layers, or one None for weights outside the layers."""
    return layers or (None,)
