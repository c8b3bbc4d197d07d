"""Floating-point weights as a spec's quantised formats, by each format's own rule: to nearest, a scale that fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedc.spec.model import ModelSpec
from schedc.weights.formats import FORMATS
from schedc.weights.source import Rows, WeightSource, family_of


@dataclass(frozen=True)
class Rounded:
    """`source` with the projections of quantised families rounded; what is quantised already stays as it is."""

    source: WeightSource
    spec: ModelSpec

    def identity(self) -> str:
        return f"to nearest {self.spec.quantization.model_dump_json(exclude_defaults=True)} of {self.source.identity()}"

    def names(self) -> tuple[str, ...]:
        return self.source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.source.shape(name)

    def format(self, name: str) -> str | None:
        return self.source.format(name) or self._rounded(name)

    def numbers(self, name: str, rows: Rows) -> dict[str, np.ndarray]:
        """Every column has scales of its own, so rows are rounded alike however they are asked for."""
        stored = self._rounded(name)
        if stored is None or self.source.format(name) is not None:
            return self.source.numbers(name, rows)
        return FORMATS[stored].nearest(self.source.load(name, rows))

    def load(self, name: str, rows: Rows | None = None) -> np.ndarray:
        stored = self._rounded(name)
        if stored is None or self.source.format(name) is not None:
            return self.source.load(name, rows)
        return FORMATS[stored].decode(self.numbers(name, rows or (0, self.shape(name)[0])))

    def _rounded(self, name: str) -> str | None:
        family = family_of(name)
        stored = None if family is None else self.spec.quantization.format(family)
        return None if stored is None or FORMATS[stored].exact else stored
