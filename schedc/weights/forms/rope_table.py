"""cos and sin by position. It holds no weights: it is computed from the spec."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.spec.rope import inverse_frequencies
from schedc.weights.forms.piece import Form, Piece, ranges
from schedc.weights.layout import RopeTable
from schedc.weights.source import WeightSource
from schedc.weights.words import LANES


def _pieces(layout: RopeTable) -> Iterator[Piece]:
    for first, last in ranges(layout.positions, layout.position_rows):
        yield Piece((last - first) * layout.position_rows, partial(_build, layout, first, last))


def _build(layout: RopeTable, first: int, last: int, _: WeightSource) -> np.ndarray:
    frequencies, factor = inverse_frequencies(layout.rope, layout.rotary_dim)
    angles = np.arange(first, last, dtype=np.float64)[:, None] * frequencies
    half = layout.rotary_dim // 2
    table = np.zeros((last - first, 2, layout.head_lanes), np.float32)
    table[:, 0, : layout.rotary_dim] = np.tile(np.cos(angles) * factor, 2)
    table[:, 0, layout.rotary_dim :] = 1.0
    table[:, 1, :half] = -np.sin(angles) * factor
    table[:, 1, half : layout.rotary_dim] = np.sin(angles) * factor
    by_panel = table.reshape(last - first, 2, layout.head_lanes // LANES, LANES).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(by_panel).view(np.int32).reshape(-1, LANES)


def _unpack(layout: RopeTable, words: np.ndarray) -> dict[str, np.ndarray]:
    values = np.ascontiguousarray(words).view(np.float32)
    panels = values.reshape(layout.positions, layout.head_lanes // LANES, 2, LANES)
    table = panels.transpose(0, 2, 1, 3).reshape(layout.positions, 2, layout.head_lanes)
    return {f"{layout.name}.cos": table[:, 0], f"{layout.name}.sin": table[:, 1]}


FORM = Form("rope_table", _pieces, _unpack)
