"""What a kind of residual gives to the step graph."""

from __future__ import annotations

from typing import Protocol

from schedc.ir.program import Op, Region
from schedc.lower.graph import Declarations, Site
from schedc.lower.parts import Part, Place
from schedc.spec.model import Half
from schedc.spec.norm import Norm
from schedc.weights.layout import VectorItem


class ResidualLowering(Protocol):
    """How the halves of the layers are connected: the buffer `x` is f32[rows, hidden], and holds the embedding first.

    A layer is told by its `place` and the trip of its site.
    """

    def layer_vectors(self) -> tuple[VectorItem, ...]:
        """Of both halves of a layer."""
        ...

    def outer_vectors(self) -> tuple[VectorItem, ...]:
        """Beside the weights of the final norm."""
        ...

    def declarations(self) -> Declarations:
        """Its storage."""
        ...

    def begin(self) -> tuple[Op, ...]:
        """Once, before the first layer."""
        ...

    def enter(self, half: Half, norm: Norm | None, out: Region, site: Site, place: Place) -> tuple[Op, ...]:
        """`out`, the left side of a dot, becomes the normalised input of a half."""
        ...

    def leave(self, half: Half, norm: Norm | None, part: Part, site: Site) -> tuple[Op, ...]:
        """The output of a half, f32[rows, hidden] without its bias, joins, normalised if it has a norm."""
        ...

    def final(self, norm: Norm, out: Region, site: Site) -> tuple[Op, ...]:
        """`out`, the left side of a dot, becomes the normalised input of the head."""
        ...
