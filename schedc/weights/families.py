"""Which families of projections a model has."""

from __future__ import annotations

from collections.abc import Iterator

from schedc.errors import SpecError
from schedc.spec.model import ModelSpec
from schedc.spec.storage import FAMILIES, Family
from schedc.weights.source import family_of, weight_name


def families_of(spec: ModelSpec) -> tuple[Family, ...]:
    """In the order of `FAMILIES`; the head is one, also where it is the embedding."""
    blocks = [block for run in spec.layers for block in run.pattern]
    names = [f"layers.0.{weight_name(name)}" for block in blocks for name in block.parameters(spec.hidden)]
    found = {"head", *(family_of(name) for name in names)}
    return tuple(family for family in FAMILIES if family in found)


def refuse_unused_formats(spec: ModelSpec) -> None:
    """Raises SpecError with one line a format of `quantization` for a family that the model lacks."""
    if problems := list(_unused(spec)):
        raise SpecError(spec.name, problems)


def _unused(spec: ModelSpec) -> Iterator[str]:
    has = families_of(spec)
    for family in FAMILIES:
        if getattr(spec.quantization, family) is not None and family not in has:
            yield f"quantization.{family}: the model has none, only {', '.join(has)}; leave it out"
