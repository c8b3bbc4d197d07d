"""What residuals with one stream share: a half reads the stream, and its output changes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from schedc.ir.program import Attribute, Op, Region
from schedc.lower.graph import LANES, Declarations, Site, StepShape, ceil_div
from schedc.lower.norms import norm_kind, norm_vectors, normalise
from schedc.lower.parts import Part, Place, compute
from schedc.spec.model import Half, ModelSpec
from schedc.spec.norm import Norm
from schedc.weights.layout import VectorItem


class StreamLowering(ABC):
    """The stream is `x`. What stands beside an output when it joins, a kind says in `joining`."""

    def __init__(self, spec: ModelSpec, shape: StepShape) -> None:
        self.spec, self.shape = spec, shape
        self.x = Region("x", residual_rows(spec, shape))
        self.size: dict[str, Attribute] = {"rows": shape.padded_rows, "columns": spec.hidden}

    @abstractmethod
    def joining(self, half: Half, site: Site) -> tuple[Mapping[str, Region], Mapping[str, Attribute]]:
        """Operands and attributes of the operation by which the output of a half joins."""

    def layer_vectors(self) -> tuple[VectorItem, ...]:
        parameters = self.spec.residual.layer_parameters(self.spec.hidden)
        return tuple(VectorItem(name, *size) for name, size in parameters.items())

    def outer_vectors(self) -> tuple[VectorItem, ...]:
        parameters = self.spec.residual.outer_parameters(self.spec.hidden)
        return tuple(VectorItem(name, *size) for name, size in parameters.items())

    def declarations(self) -> Declarations:
        return Declarations()

    def begin(self) -> tuple[Op, ...]:
        return ()

    def enter(self, half: Half, norm: Norm | None, out: Region, site: Site, place: Place) -> tuple[Op, ...]:
        if norm is None:
            dtype = self.spec.quantization.operand_dtype
            return (compute("as_operand", {"x": self.x}, {"out": out}, attributes=self.size, dtype=dtype),)
        return (normalise(norm, self.x, out, site, f"pre_{half}_norm", self.spec, self.shape),)

    def leave(self, half: Half, norm: Norm | None, part: Part, site: Site) -> tuple[Op, ...]:
        reads: dict[str, Region | None] = {"y": Region(part.output, self.x.rows)}
        if part.output_bias is not None:
            reads["bias"] = site.vector(part.output_bias)
        operands, settings = self.joining(half, site)
        reads |= operands
        attributes = {**self.size, **settings}
        updates: dict[str, Region | None] = {"x": self.x}
        if norm is None:
            return (compute("residual_add", reads, updates=updates, attributes=attributes),)
        names = {"weight": "weight", "bias": "norm_bias"}
        vectors = norm_vectors(norm, site, f"post_{half}_norm")
        reads |= {names[part]: vector for part, vector in vectors.items()}
        attributes |= {"eps": norm.eps, "kind": norm_kind(norm)}
        return (compute("residual_add_norm", reads, updates=updates, attributes=attributes),)

    def final(self, norm: Norm, out: Region, site: Site) -> tuple[Op, ...]:
        return (normalise(norm, self.x, out, site, "final_norm", self.spec, self.shape),)


def residual_rows(spec: ModelSpec, shape: StepShape) -> int:
    """Rows of the residual stream, f32[rows, hidden]."""
    return ceil_div(spec.hidden, LANES) * shape.padded_rows
