"""Which contexts a kernel can serve whose rotations have longrope: one set of factors for every key of its cache."""

from __future__ import annotations

from schedc.spec.model import ModelSpec
from schedc.spec.rope import LongRopeScaling


def longest_context(spec: ModelSpec) -> int:
    """Tokens of the longest sequences that one kernel can serve."""
    short = [scaling.original_max_position for scaling in _longropes(spec) if scaling.sequences == "short"]
    return min([spec.max_position, *short])


def _longropes(spec: ModelSpec) -> list[LongRopeScaling]:
    ropes = [rope for at in spec.iter_layers() if (rope := getattr(at.block.mixer, "rope", None)) is not None]
    return [rope.scaling for rope in ropes if isinstance(rope.scaling, LongRopeScaling)]


def longrope_problems(spec: ModelSpec, context: int) -> list[str]:
    """Whether a kernel of that context turns all its keys by the factors of longrope that their sequences need."""
    scalings = _longropes(spec)
    if not scalings:
        return []
    most, sequences = scalings[0].original_max_position, scalings[0].sequences
    if sequences == "short" and context > most:
        return [
            f"context: {context} is more than {most}, where longrope turns from short to long factors and every key of "
            f"the cache would have to be computed again; use a context of {most}, or rope.scaling.sequences: long for "
            f"sequences that have more than {most} tokens from their first decoded token on"
        ]
    if sequences == "long" and context <= most:
        return [
            f"context: {context} holds no sequence of more than {most} tokens, as rope.scaling.sequences: long asks"
        ]
    return []
