"""Norm weights, biases and other small vectors, all f32."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.weights.forms.piece import Form, Piece, Where, places_of
from schedc.weights.layout import VectorItem, Vectors
from schedc.weights.source import WeightSource
from schedc.weights.words import LANES


def _pieces(layout: Vectors) -> Iterator[Piece]:
    for where in places_of(layout.layers, layout.members):
        yield Piece(layout.layer_rows, partial(_build, layout, where))


def _build(layout: Vectors, where: Where, source: WeightSource) -> np.ndarray:
    block = np.zeros((layout.layer_rows, LANES), np.float32)
    for offset, item in () if where.absent else zip(layout.offsets, layout.items, strict=True):
        name = where.name(item.weight)
        vector = source.load(name)
        expected = (item.of or item.length, item.taps) if item.taps else (item.of or item.length,)
        if vector.shape != expected:
            raise ValueError(f"{layout.name}: {name} has shape {vector.shape}, the layout has {expected}")
        held = np.atleast_2d(vector.T)[:, item.start : item.start + item.length] + item.add
        held = np.pad(held, ((0, 0), (0, item.length - held.shape[1])))
        rows = block[offset : offset + item.rows].reshape(len(held), -1)
        rows[:, : _lanes_used(item)] = [_spread(item, part) for part in held]
    return block.view(np.int32)


def _lanes_used(item: VectorItem) -> int:
    return item.repeat * _lanes_once(item)


def _lanes_once(item: VectorItem) -> int:
    return item.length // item.block * item.block_lanes if item.block else item.length


def _spread(item: VectorItem, vector: np.ndarray) -> np.ndarray:
    if item.block:
        blocks = vector.reshape(-1, item.block)
        vector = np.pad(blocks, ((0, 0), (0, item.block_lanes - item.block))).reshape(-1)
    return np.tile(vector, item.repeat).astype(np.float32)


def _unpack(layout: Vectors, words: np.ndarray) -> dict[str, np.ndarray]:
    values = np.ascontiguousarray(words).view(np.float32).reshape(-1, layout.layer_rows, LANES)
    weights: dict[str, np.ndarray] = {}
    for where, block in zip(places_of(layout.layers, layout.members), values, strict=True):
        for offset, item in () if where.absent else zip(layout.offsets, layout.items, strict=True):
            parts = block[offset : offset + item.rows].reshape(max(item.taps, 1), -1)
            found = np.stack([_gathered(item, part[: _lanes_once(item)]) for part in parts], axis=-1)
            weights[where.name(item.weight)] = found if item.taps else found[:, 0]
    return weights


def _gathered(item: VectorItem, vector: np.ndarray) -> np.ndarray:
    """The inverse of `_spread`, with zeros for what the device does not hold."""
    if item.block:
        vector = vector.reshape(-1, item.block_lanes)[:, : item.block].reshape(-1)
    found = np.zeros(item.of or item.length, np.float32)
    held = found[item.start : item.start + item.length]
    held[:] = vector[: len(held)] - np.float32(item.add)
    return found


FORM = Form("vectors", _pieces, _unpack)
