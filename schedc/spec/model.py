"""`ModelSpec`: what a model is. It says nothing about how, or on what, it runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Annotated, Literal

from pydantic import Field, Strict

from schedc.spec.base import Part, Problem
from schedc.spec.feed_forwards import FeedForward
from schedc.spec.mixers import Mixer
from schedc.spec.norm import Norm
from schedc.spec.residuals import Residual
from schedc.spec.residuals.plain import PlainResidual
from schedc.spec.storage import KvCache, Quantization

Placement = Literal["pre", "post", "sandwich"]
Half = Literal["mixer", "feed_forward"]
HALVES: tuple[Half, Half] = ("mixer", "feed_forward")


class Block(Part):
    """One layer: a mixer, then a feed-forward, each added to the residual stream x.

    pre:      x += mixer(norm(x))          post:      x += norm(mixer(x))
    sandwich: x += norm(mixer(norm'(x)))   and the same with the feed-forward.
    The norms of the outputs are `output_norm` where that is given, else `norm`, each with a weight of its own; that
    of the feed-forward's output may be another, `feed_forward_output_norm`.
    """

    mixer: Mixer
    feed_forward: FeedForward
    norm: Norm
    placement: Placement = "pre"
    output_norm: Norm | None = None
    feed_forward_output_norm: Norm | None = None

    def problems(self) -> Iterator[Problem]:
        for name in ("output_norm", "feed_forward_output_norm"):
            if getattr(self, name) is not None and self.placement == "pre":
                yield name, "the outputs of a block with placement pre are not normalised; use post or sandwich"

    @property
    def pre_norm(self) -> Norm | None:
        """The norm of the mixer's and of the feed-forward's input, each with its own weight."""
        return self.norm if self.placement in ("pre", "sandwich") else None

    @property
    def post_mixer_norm(self) -> Norm | None:
        """The norm of the mixer's output."""
        if self.placement == "pre":
            return None
        return self.norm if self.output_norm is None else self.output_norm

    @property
    def post_feed_forward_norm(self) -> Norm | None:
        """The norm of the feed-forward's output."""
        return self.post_mixer_norm if self.feed_forward_output_norm is None else self.feed_forward_output_norm

    def post_norm(self, half: Half) -> Norm | None:
        return self.post_mixer_norm if half == "mixer" else self.post_feed_forward_norm

    def parameters(self, hidden: int) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights of one such layer, by names such as `mixer.q` and `pre_mixer_norm.weight`."""
        shapes: dict[str, tuple[int, ...]] = {}
        for half, part in ((HALVES[0], self.mixer), (HALVES[1], self.feed_forward)):
            if self.pre_norm:
                shapes |= _prefixed(f"pre_{half}_norm", self.pre_norm.parameters(hidden))
            shapes |= _prefixed(half, part.parameters(hidden))
            post_norm = self.post_norm(half)
            if post_norm:
                shapes |= _prefixed(f"post_{half}_norm", post_norm.parameters(hidden))
        return shapes


class Run(Part):
    """`pattern`, `repeat` times over."""

    repeat: int = Field(gt=0, le=10_000)
    pattern: tuple[Block, ...] = Field(min_length=1, strict=False)


class Embedding(Part):
    """x = norm(multiplier · table[id]). `tied`: the head multiplies by the same table, transposed."""

    tied: bool
    multiplier: float = Field(default=1.0, gt=0)
    norm: Norm | None = None


class Head(Part):
    """logits = multiplier · (norm(x)·W + b), then cap·tanh(logits / cap) if there is a `soft_cap`."""

    multiplier: float = Field(default=1.0, gt=0)
    soft_cap: float | None = Field(default=None, gt=0)
    bias: bool = False


@dataclass(frozen=True)
class LayerAt:
    """Where a layer stands: `layer` counts from 0 over the model; run, trip and place say which block it is."""

    layer: int
    run: int
    trip: int
    place: int
    block: Block


class ModelSpec(Part):
    """What a model is: sizes, layers as runs of patterns, what is cached, what weights are stored in."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="also the name of the output folder")
    hidden: int = Field(gt=0)
    vocab: int = Field(gt=0)
    max_position: int = Field(gt=0, description="tokens a sequence may have")
    eos_token_ids: tuple[Annotated[int, Strict(), Field(ge=0)], ...] = Field(default=(), strict=False)
    embedding: Embedding
    layers: tuple[Run, ...] = Field(min_length=1, strict=False)
    final_norm: Norm
    head: Head = Head()
    residual: Residual = PlainResidual()
    kv: KvCache = KvCache()
    quantization: Quantization = Quantization()

    def problems(self) -> Iterator[Problem]:
        for index, token in enumerate(self.eos_token_ids):
            if token >= self.vocab:
                yield f"eos_token_ids[{index}]", f"{token} is not a token of a vocabulary of {self.vocab}"

    @property
    def num_layers(self) -> int:
        return sum(run.repeat * len(run.pattern) for run in self.layers)

    def iter_layers(self) -> Iterator[LayerAt]:
        """Every layer of the model, in order."""
        layer = 0
        for run_index, run in enumerate(self.layers):
            for trip in range(run.repeat):
                for place, block in enumerate(run.pattern):
                    yield LayerAt(layer, run_index, trip, place, block)
                    layer += 1

    def layer_parameters(self, block: Block) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights of one layer with this block."""
        return block.parameters(self.hidden) | self.residual.layer_parameters(self.hidden)

    def outer_parameters(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights outside the layers; a tied head has none of its own."""
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.vocab, self.hidden)}
        if self.embedding.norm is not None:
            shapes |= _prefixed("embedding_norm", self.embedding.norm.parameters(self.hidden))
        shapes |= self.residual.outer_parameters(self.hidden)
        shapes |= _prefixed("final_norm", self.final_norm.parameters(self.hidden))
        if not self.embedding.tied:
            shapes["head"] = (self.hidden, self.vocab)
        if self.head.bias:
            shapes["head_bias"] = (self.vocab,)
        return shapes

    def parameter_counts(self) -> dict[str, int]:
        """Number of parameters by weight, summed over layers, tied ones once; their sum is the model's size."""
        counts = {name: prod(shape) for name, shape in self.outer_parameters().items()}
        for run in self.layers:
            for block in run.pattern:
                for name, shape in self.layer_parameters(block).items():
                    counts[name] = counts.get(name, 0) + run.repeat * prod(shape)
        return counts


def _prefixed(prefix: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}
