"""Projections as panels of 128 columns, in any format."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from schedc.weights.formats import FORMATS
from schedc.weights.formats.format import Numbers, Section, join_panels, split_panels
from schedc.weights.forms.piece import Form, Piece, Where, places_of, ranges
from schedc.weights.layout import PanelMatrix
from schedc.weights.source import WeightSource, stored_numbers
from schedc.weights.words import LANES


def _pieces(layout: PanelMatrix) -> Iterator[Piece]:
    for where in places_of(layout.layers, layout.members):
        for first, last in ranges(layout.tiles, layout.tile_rows):
            yield Piece((last - first) * layout.tile_rows, partial(_build, layout, where, first, last))


def _build(layout: PanelMatrix, where: Where, first: int, last: int, source: WeightSource) -> np.ndarray:
    kind = FORMATS[layout.format]
    tile_width = layout.tile_panels * LANES
    low, high = first * tile_width, last * tile_width
    words = np.zeros((high - low, layout.panel_rows), np.int32)
    at = 0
    for block in () if where.absent else layout.columns:
        name = where.name(block.weight)
        skip, stop = max(low - at, 0), min(high - at, block.count, source.shape(name)[0] - block.start)
        if skip < stop:
            numbers = stored_numbers(source, name, layout.format, (block.start + skip, block.start + stop))
            rearranged = {section.name: _inputs(layout, name, section, numbers) for section in kind.sections}
            words[at + skip - low : at + stop - low] = kind.to_words(rearranged, layout.k)
        at += block.width
    return join_panels(words)


def _inputs(layout: PanelMatrix, name: str, section: Section, numbers: Numbers) -> np.ndarray:
    """The numbers [columns, n] of a section in the order of the layout's inputs."""
    given = numbers[section.name]
    if not section.group:
        return given
    if not layout.inputs:
        if given.shape[1] != section.numbers(layout.k):
            inputs = numbers["codes"].shape[1]
            raise ValueError(f"{layout.name}: {name} has {inputs} inputs, the layout has k = {layout.k}")
        return given
    out = np.zeros((len(given), section.numbers(layout.k)), given.dtype)
    at = 0
    for block in layout.inputs:
        start, count = block.start // section.group, section.numbers(block.count)
        taken = given[:, start : start + count]
        out[:, at // section.group : at // section.group + taken.shape[1]] = taken
        at += block.width
    return out


def _unpack(layout: PanelMatrix, words: np.ndarray) -> dict[str, np.ndarray]:
    kind = FORMATS[layout.format]
    return {name: kind.decode(numbers) for name, numbers in unpack_numbers(layout, words).items()}


def unpack_numbers(layout: PanelMatrix, words: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """By full name of the weight, the bits of every section as they were packed; zeros where nothing was."""
    kind = FORMATS[layout.format]
    columns = split_panels(words, layout.panel_rows).reshape(-1, layout.width, layout.panel_rows)
    weights: dict[str, dict[str, np.ndarray]] = {}
    for where, matrix in zip(places_of(layout.layers, layout.members), columns, strict=True):
        at = 0
        for block in () if where.absent else layout.columns:
            name, stop = where.name(block.weight), block.start + block.count
            found = kind.from_words(matrix[at : at + block.count], layout.k)
            numbers = weights.setdefault(name, {})
            for section in kind.sections:
                outputs = _weight_order(layout, section, found[section.name])
                old = numbers.get(section.name, np.zeros((0, outputs.shape[1]), outputs.dtype))
                grown = np.zeros((max(stop, len(old)), outputs.shape[1]), outputs.dtype)
                grown[: len(old)] = old
                grown[block.start : stop] = outputs
                numbers[section.name] = grown
            at += block.width
    return weights


def _weight_order(layout: PanelMatrix, section: Section, numbers: np.ndarray) -> np.ndarray:
    """The inverse of `_inputs`."""
    if not (layout.inputs and section.group):
        return numbers
    inputs = max(block.start + block.count for block in layout.inputs)
    out = np.zeros((len(numbers), section.numbers(inputs)), numbers.dtype)
    at = 0
    for block in layout.inputs:
        start, count = block.start // section.group, section.numbers(block.count)
        out[:, start : start + count] = numbers[:, at // section.group : at // section.group + count]
        at += block.width
    return out


FORM = Form("panel_matrix", _pieces, _unpack)
