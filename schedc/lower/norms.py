"""Norms of the residual stream: their vectors, their operands, and the operation that makes a dot's left side."""

from __future__ import annotations

from schedc.ir.program import Op, Region
from schedc.lower.graph import Site, StepShape
from schedc.lower.parts import compute
from schedc.spec.model import ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import VectorItem


def norm_kind(norm: Norm) -> str:
    """The attribute `kind` of the operations."""
    return "rms_of_scaled" if norm.scale_first else norm.kind


def norm_items(norm: Norm | None, name: str, spec: ModelSpec) -> tuple[VectorItem, ...]:
    """The vectors of a norm; a unit offset is added when the weights are packed."""
    if norm is None:
        return ()
    weight = VectorItem(f"{name}.weight", spec.hidden, add=float(norm.unit_offset))
    bias = VectorItem(f"{name}.bias", spec.hidden)
    return (*((weight,) if norm.weight else ()), *((bias,) if norm.bias else ()))


def norm_vectors(norm: Norm, site: Site, name: str) -> dict[str, Region | None]:
    """The operands of a norm whose weights are called `name`.weight and `name`.bias."""
    parts = {"weight": norm.weight, "bias": norm.bias}
    return {part: site.vector(f"{name}.{part}") for part, present in parts.items() if present}


def normalise(norm: Norm, x: Region, out: Region, site: Site, name: str, spec: ModelSpec, shape: StepShape) -> Op:
    reads: dict[str, Region | None] = {"x": x, **norm_vectors(norm, site, name)}
    return compute(
        "norm",
        reads,
        {"out": out},
        rows=shape.padded_rows,
        columns=spec.hidden,
        eps=norm.eps,
        kind=norm_kind(norm),
        dtype=spec.quantization.operand_dtype,
    )
