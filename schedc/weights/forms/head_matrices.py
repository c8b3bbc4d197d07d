"""Outputs of a projection head by head, transposed: the right sides of dots that undo it."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.weights.formats import FORMATS
from schedc.weights.formats.format import join_panels, split_panels
from schedc.weights.forms.piece import Form, Piece, Where, places_of, ranges
from schedc.weights.layout import HeadMatrices
from schedc.weights.source import WeightSource
from schedc.weights.words import lanes_up


def _pieces(layout: HeadMatrices) -> Iterator[Piece]:
    for where in places_of(layout.layers, ()):
        for first, last in ranges(layout.heads, layout.head_rows):
            yield Piece((last - first) * layout.head_rows, partial(_build, layout, where, first, last))


def _build(layout: HeadMatrices, where: Where, first: int, last: int, source: WeightSource) -> np.ndarray:
    columns = np.zeros((last - first, lanes_up(layout.width), layout.depth), np.float32)
    at = 0
    for block in layout.blocks:
        name = where.name(block.weight)
        outputs, inputs = source.shape(name)
        if inputs != layout.width:
            raise ValueError(f"{layout.name}: {name} has {inputs} inputs, the layout has {layout.width} columns")
        for head in range(max(first, at), min(last, at + block.heads)):
            start = block.start + (head - at) * block.stride
            if start + block.count <= outputs:
                columns[head - first, :inputs] = source.load(name, (start, start + block.count)).T
        at += block.heads
    kind = FORMATS[layout.dtype]
    return join_panels(kind.to_words(kind.nearest(columns.reshape(-1, layout.depth)), layout.depth))


def _unpack(layout: HeadMatrices, words: np.ndarray) -> dict[str, np.ndarray]:
    kind = FORMATS[layout.dtype]
    columns = split_panels(words, kind.panel_rows(layout.depth))
    values = kind.decode(kind.from_words(columns, layout.depth))
    matrices = values.reshape(-1, layout.heads, lanes_up(layout.width), layout.depth)[:, :, : layout.width]
    weights: dict[str, np.ndarray] = {}
    for where, heads in zip(places_of(layout.layers, ()), matrices, strict=True):
        at = 0
        for block in layout.blocks:
            outputs = np.zeros((block.start + block.heads * block.stride, layout.width), np.float32)
            for head in range(block.heads):
                start = block.start + head * block.stride
                outputs[start : start + block.count] = heads[at + head].T
            weights[where.name(block.weight)] = outputs
            at += block.heads
    return weights


FORM = Form("head_matrices", _pieces, _unpack)
