"""Projections as panels of 128 columns."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.weights.forms.piece import Form, Piece, Where, places_of, ranges
from schedc.weights.layout import PanelMatrix
from schedc.weights.source import WeightSource
from schedc.weights.words import LANES, from_bits, per_word, to_bits


def _pieces(layout: PanelMatrix) -> Iterator[Piece]:
    for where in places_of(layout.layers, layout.members):
        for first, last in ranges(layout.tiles, layout.tile_rows):
            yield Piece((last - first) * layout.tile_rows, partial(_build, layout, where, first, last))


def _build(layout: PanelMatrix, where: Where, first: int, last: int, source: WeightSource) -> np.ndarray:
    tile_width = layout.tile_panels * LANES
    low, high = first * tile_width, last * tile_width
    bits = np.zeros((high - low, layout.panel_rows * per_word(layout.dtype)), to_bits(np.zeros(0), layout.dtype).dtype)
    at = 0
    for block in () if where.absent else layout.columns:
        name = where.name(block.weight)
        skip, stop = max(low - at, 0), min(high - at, block.count, source.shape(name)[0] - block.start)
        if skip < stop:
            outputs = source.load(name, (block.start + skip, block.start + stop))
            _put_inputs(layout, name, to_bits(outputs, layout.dtype), bits[at + skip - low : at + stop - low])
        at += block.width
    words = bits.view(np.int32).reshape((last - first) * layout.tile_panels, LANES, layout.panel_rows)
    return words.transpose(0, 2, 1).reshape(-1, LANES)


def _put_inputs(layout: PanelMatrix, name: str, outputs: np.ndarray, out: np.ndarray) -> None:
    """Bits [columns, in] into [columns, padded k]."""
    if not layout.inputs:
        if outputs.shape[1] != layout.k:
            raise ValueError(f"{layout.name}: {name} has {outputs.shape[1]} inputs, the layout has k = {layout.k}")
        out[:, : layout.k] = outputs
        return
    at = 0
    for block in layout.inputs:
        given = outputs[:, block.start : block.start + block.count]
        out[:, at : at + given.shape[1]] = given
        at += block.width


def _unpack(layout: PanelMatrix, words: np.ndarray) -> dict[str, np.ndarray]:
    places = list(places_of(layout.layers, layout.members))
    panels = words.reshape(len(places), layout.width // LANES, layout.panel_rows, LANES)
    columns = np.ascontiguousarray(panels.transpose(0, 1, 3, 2)).reshape(len(panels), layout.width, layout.panel_rows)
    values = from_bits(columns.view(to_bits(np.zeros(0), layout.dtype).dtype), layout.dtype)
    weights: dict[str, np.ndarray] = {}
    for where, matrix in zip(places, values, strict=True):
        at = 0
        for block in () if where.absent else layout.columns:
            name, stop = where.name(block.weight), block.start + block.count
            outputs = _take_inputs(layout, matrix[at : at + block.count])
            old = weights.get(name, np.zeros((0, outputs.shape[1]), np.float32))
            grown = np.zeros((max(stop, len(old)), outputs.shape[1]), np.float32)
            grown[: len(old)] = old
            grown[block.start : stop] = outputs
            weights[name] = grown
            at += block.width
    return weights


def _take_inputs(layout: PanelMatrix, columns: np.ndarray) -> np.ndarray:
    if not layout.inputs:
        return columns[:, : layout.k]
    out = np.zeros((len(columns), max(block.start + block.count for block in layout.inputs)), np.float32)
    at = 0
    for block in layout.inputs:
        out[:, block.start : block.start + block.count] = columns[:, at : at + block.count]
        at += block.width
    return out


FORM = Form("panel_matrix", _pieces, _unpack)
