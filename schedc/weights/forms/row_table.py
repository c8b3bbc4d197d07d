"""A table whose rows are fetched one at a time."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.weights.forms.piece import Form, Piece, ranges
from schedc.weights.layout import RowTable
from schedc.weights.source import WeightSource
from schedc.weights.words import LANES, from_bits, per_word, to_bits


def _pieces(layout: RowTable) -> Iterator[Piece]:
    for first, last in ranges(layout.entries, layout.entry_rows):
        yield Piece((last - first) * layout.entry_rows, partial(_build, layout, first, last))


def _build(layout: RowTable, first: int, last: int, source: WeightSource) -> np.ndarray:
    halves = per_word(layout.dtype)
    padded = np.zeros((last - first, halves * layout.entry_rows * LANES), np.float32)
    values = source.load(layout.weight, (first, min(last, source.shape(layout.weight)[0])))
    padded[: len(values), : layout.width] = values
    bits = to_bits(padded, layout.dtype).reshape(-1, halves, layout.entry_rows * LANES)
    words = bits[:, 0] | bits[:, 1].astype(np.uint32) << 16 if halves == 2 else bits[:, 0]
    return np.ascontiguousarray(words).view(np.int32).reshape(-1, LANES)


def _unpack(layout: RowTable, words: np.ndarray) -> dict[str, np.ndarray]:
    bits = np.ascontiguousarray(words).view(np.uint32).reshape(layout.entries, layout.entry_rows * LANES)
    if layout.dtype == "bf16":
        bits = np.concatenate([bits & 0xFFFF, bits >> 16], axis=1).astype(np.uint16)
    return {layout.weight: from_bits(bits, layout.dtype)[:, : layout.width]}


FORM = Form("row_table", _pieces, _unpack)
