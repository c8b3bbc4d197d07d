"""Normalisation over the last axis."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from schedc.spec.base import Part, Problem


class Norm(Part):
    """y = x / sqrt(mean(x²) + eps) · w  (rms), or y = (x - mean) / sqrt(var + eps) · w + b  (layer), in f32.

    With `unit_offset` the stored weight is an offset from one: 1 + w stands in the place of w (Gemma).
    Without `weight` there is no w, which is then one. With `scale_first` w multiplies x before x is normalised:
    y = x·w / sqrt(mean((x·w)²) + eps).
    """

    kind: Literal["rms", "layer"]
    eps: float = Field(gt=0)
    unit_offset: bool = False
    bias: bool = False
    weight: bool = True
    scale_first: bool = False

    def problems(self) -> Iterator[Problem]:
        if self.bias and self.kind == "rms":
            yield "bias", "an rms norm has no bias; use kind: layer, or bias: false"
        if not self.weight and (self.unit_offset or self.bias):
            yield "weight", "a norm without weight has neither unit_offset nor bias"
        if self.scale_first and (self.kind == "layer" or not self.weight):
            yield "scale_first", "belongs to an rms norm with a weight"

    def parameters(self, width: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"weight": (width,)} if self.weight else {}
        if self.bias:
            shapes["bias"] = (width,)
        return shapes
