"""In which formats weights and caches are stored."""

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from schedc.spec.base import Part, Problem

Dtype = Literal["bf16", "f32"]

Format = Literal["bf16", "f32", "int8", "fp8", "fp8_block128", "int4_g32", "int4_g64", "int4_g128", "mxfp4", "nvfp4"]
"""int8: a scale a column; fp8 (e4m3): a scale a tensor, or one a block of 128×128; int4: a scale a group of inputs of a
column; mxfp4: a power of two a group of 32; nvfp4: an fp8 scale a group of 16, times one of the tensor."""

CacheFormat = Literal["bf16", "f32", "fp8"]

Family = Literal["attention", "decay", "dense", "experts", "shared", "router", "head"]
"""A family of projections: of mixers, of decays and betas of mixers with state, of dense feed-forwards, routed experts,
shared experts, routers, the output."""

FAMILIES: tuple[Family, ...] = get_args(Family)


WindowCache = Literal["context", "ring"]


class KvCache(Part):
    """The cache of keys and values in HBM. paged: a page is a tile of `page_tokens`, found by a table.

    Layers that see a window or chunk have room for the whole context, or (ring) for the tiles in sight alone.
    """

    dtype: CacheFormat = "bf16"
    layout: Literal["contiguous", "paged"] = "contiguous"
    page_tokens: int | None = Field(default=None, gt=0, description="of a paged cache")
    window: WindowCache = Field(default="context", description="of layers with a window or chunks")

    def problems(self) -> Iterator[Problem]:
        if self.layout == "paged" and self.page_tokens is None:
            yield "page_tokens", "missing: a page of a paged cache has so many tokens, as in page_tokens: 64"
        if self.layout != "paged" and self.page_tokens is not None:
            yield "page_tokens", "belongs to the layout paged; leave it out, or use layout: paged"
        if self.layout == "paged" and self.window == "ring":
            yield "window", "ring belongs to the layout contiguous: of pages a table says which; use window: context"


class Quantization(Part):
    """The format that weights are stored and streamed in: `weights`, with exceptions by family.

    Norms, biases and other vectors are small and stay f32. `arithmetic` None: f32 if `weights` is f32, else bf16.
    """

    weights: Format = "bf16"
    attention: Format | None = None
    decay: Dtype | None = None
    dense: Format | None = None
    experts: Format | None = None
    shared: Format | None = None
    router: Dtype | None = None
    head: Format | None = None
    embedding: Dtype | None = None
    arithmetic: Dtype | None = None

    @property
    def operand_dtype(self) -> Dtype:
        """The dtype of a dot's left side and of dequantised weights."""
        if self.arithmetic is not None:
            return self.arithmetic
        return "f32" if self.weights == "f32" else "bf16"

    def format(self, family: Family) -> Format:
        """Of a family's projections. Decays, routers and the head are not quantised unless it is asked for."""
        own: Format | None = getattr(self, family)
        if own is not None:
            return own
        return self.unquantised if family in ("decay", "router", "head") else self.weights

    @property
    def unquantised(self) -> Dtype:
        """The dtype of what is not quantised by default: the embedding, decays, routers, the head."""
        return "f32" if self.weights == "f32" else "bf16"

    @property
    def embedding_dtype(self) -> Dtype:
        return self.unquantised if self.embedding is None else self.embedding

    @property
    def formats(self) -> tuple[Format, ...]:
        """Every format in use, each once."""
        return tuple(dict.fromkeys(self.format(family) for family in FAMILIES))
