"""Rotary position embedding: which pairs turn, how fast, and how the speeds are scaled for longer contexts.

Pair i at position p is turned by the angle p · f[i]: (a, b) → m·(a·cos - b·sin, b·cos + a·sin).
`inverse_frequencies` gives f (radians a position) and m.
"""

from collections.abc import Iterator
from math import ceil, floor, log, pi, sqrt
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, Strict

from schedc.spec.base import Part, Problem


class LinearScaling(Part):
    """All frequencies divided by `factor` (position interpolation, arXiv 2306.15595)."""

    kind: Literal["linear"]
    factor: float = Field(ge=1)


class Llama3Scaling(Part):
    """Llama 3.1: slow pairs divided by `factor`, fast ones kept, a linear blend between.

    A pair is slow below `low_freq_factor` turns over the original context, fast above `high_freq_factor`; equal
    factors leave no blend.
    """

    kind: Literal["llama3"]
    factor: float = Field(ge=1)
    low_freq_factor: float = Field(gt=0)
    high_freq_factor: float = Field(gt=0)
    original_max_position: int = Field(gt=0)

    def problems(self) -> Iterator[Problem]:
        if self.low_freq_factor > self.high_freq_factor:
            yield (
                "low_freq_factor",
                (f"{self.low_freq_factor:g} is above high_freq_factor {self.high_freq_factor:g}; use that or less"),
            )


class LongRopeScaling(Part):
    """LongRoPE (arXiv 2402.13753): pair i is divided by `short_factor[i]` in sequences of up to
    `original_max_position` tokens, and by `long_factor[i]` in longer ones, all their tokens alike.

    A sequence that grows past that length would need all its keys again. So a kernel serves one of two `sequences`:
    `short` ones, or those that are `long` with their first decoded token. `attention_factor` is m; without it,
    m = sqrt(1 + ln(factor) / ln(original_max_position)).
    """

    kind: Literal["longrope"]
    factor: float = Field(ge=1, description="max_position over original_max_position")
    original_max_position: int = Field(gt=1)
    short_factor: tuple[Annotated[float, Strict(), Field(gt=0)], ...] = Field(min_length=1, strict=False)
    long_factor: tuple[Annotated[float, Strict(), Field(gt=0)], ...] = Field(min_length=1, strict=False)
    attention_factor: float | None = Field(default=None, gt=0)
    sequences: Literal["short", "long"] = "short"

    def problems(self) -> Iterator[Problem]:
        if len(self.short_factor) != len(self.long_factor):
            yield "long_factor", f"{len(self.long_factor)} numbers, but short_factor has {len(self.short_factor)}"


class YarnScaling(Part):
    """YaRN (arXiv 2309.00071): a ramp over the pair index, between `beta_fast` and `beta_slow` turns.

    `truncate` rounds the ends of the ramp outwards to whole pairs. `attention_factor` is m; without it,
    m = g(mscale) / g(mscale_all_dim) if both are given, else g(1), where g(s) = 0.1·s·ln(factor) + 1.
    """

    kind: Literal["yarn"]
    factor: float = Field(ge=1)
    original_max_position: int = Field(gt=0)
    beta_fast: float = Field(default=32.0, gt=0)
    beta_slow: float = Field(default=1.0, gt=0)
    truncate: bool = True
    attention_factor: float | None = Field(default=None, gt=0)
    mscale: float | None = Field(default=None, gt=0)
    mscale_all_dim: float | None = Field(default=None, gt=0)

    def problems(self) -> Iterator[Problem]:
        if self.beta_slow > self.beta_fast:
            yield "beta_slow", f"{self.beta_slow:g} is above beta_fast {self.beta_fast:g}; use that or less"
        if (self.mscale is None) != (self.mscale_all_dim is None):
            given, absent = (
                ("mscale", "mscale_all_dim") if self.mscale_all_dim is None else ("mscale_all_dim", "mscale")
            )
            yield given, f"has no effect without {absent}; give both or neither"


Frequencies = npt.NDArray[np.float64]
Scaling = Annotated[LinearScaling | Llama3Scaling | LongRopeScaling | YarnScaling, Field(discriminator="kind")]


class Rope(Part):
    """Pairs are dimensions (i, i + rotary_dim/2) for `half`, (2i, 2i + 1) for `adjacent`.

    The first `rotary_dim` dimensions of a head turn (None: all), the rest pass through.
    """

    theta: float = Field(gt=1)
    pairs: Literal["half", "adjacent"] = "half"
    rotary_dim: int | None = Field(default=None, gt=0)
    scaling: Scaling | None = None

    def problems(self) -> Iterator[Problem]:
        if self.rotary_dim is not None and self.rotary_dim % 2:
            yield "rotary_dim", f"{self.rotary_dim} is odd, and dimensions turn in pairs; use an even number"


def inverse_frequencies(rope: Rope, rotary_dim: int) -> tuple[Frequencies, float]:
    """(f64[rotary_dim / 2] radians a position, factor m of cos and sin). `rotary_dim` is the mixer's, resolved."""
    plain = rope.theta ** (-np.arange(0, rotary_dim, 2, dtype=np.float64) / rotary_dim)
    match rope.scaling:
        case None:
            return plain, 1.0
        case LinearScaling(factor=factor):
            return plain / factor, 1.0
        case Llama3Scaling():
            return _llama3(plain, rope.scaling), 1.0
        case LongRopeScaling() as scaling:
            factors = scaling.short_factor if scaling.sequences == "short" else scaling.long_factor
            return plain / np.array(factors), _longrope_attention_factor(scaling)
        case YarnScaling():
            return _yarn(plain, rope.theta, rotary_dim, rope.scaling), yarn_attention_factor(rope.scaling)


def _llama3(plain: Frequencies, scaling: Llama3Scaling) -> Frequencies:
    turns = scaling.original_max_position * plain / (2 * pi)
    blend = scaling.high_freq_factor - scaling.low_freq_factor
    kept = (turns - scaling.low_freq_factor) / blend if blend else (turns >= scaling.low_freq_factor).astype(np.float64)
    kept = np.clip(kept, 0.0, 1.0)
    return kept * plain + (1 - kept) * plain / scaling.factor


def _yarn(plain: Frequencies, theta: float, rotary_dim: int, scaling: YarnScaling) -> Frequencies:
    def pair_that_turns(times: float) -> float:
        return rotary_dim * log(scaling.original_max_position / (times * 2 * pi)) / (2 * log(theta))

    low, high = pair_that_turns(scaling.beta_fast), pair_that_turns(scaling.beta_slow)
    if scaling.truncate:
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, rotary_dim - 1)
    width = high - low or 0.001
    interpolated: Frequencies = np.clip((np.arange(rotary_dim // 2) - low) / width, 0.0, 1.0)
    return interpolated * plain / scaling.factor + (1 - interpolated) * plain


def _longrope_attention_factor(scaling: LongRopeScaling) -> float:
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    return sqrt(1 + log(scaling.factor) / log(scaling.original_max_position))


def scaling_problem(rope: Rope, rotary_dim: int) -> str | None:
    """What is wrong with the scaling of a rope that turns `rotary_dim` dimensions."""
    scaling = rope.scaling
    if not isinstance(scaling, LongRopeScaling) or 2 * len(scaling.short_factor) == rotary_dim:
        return None
    return f"{len(scaling.short_factor)} numbers for {rotary_dim // 2} pairs; one a pair"


def yarn_attention_factor(scaling: YarnScaling) -> float:
    """What cos and sin are multiplied by, so q·kᵀ by its square."""

    def g(mscale: float) -> float:
        return 0.1 * mscale * log(scaling.factor) + 1.0

    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.mscale is not None and scaling.mscale_all_dim is not None:
        return g(scaling.mscale) / g(scaling.mscale_all_dim)
    return g(1.0)
