"""How many experts a device has to go through in a step: of any device, and of the one that has most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from schedc.published.form import Experts

DRAWS = 4096
"""Layers that are drawn: the mean of the fullest is then known to about 1 %."""


@dataclass(frozen=True)
class Loads:
    """Number of distinct experts → its probability."""

    device: Mapping[int, float]
    """Of any device."""
    slowest: Mapping[int, float]
    """Of the device that has most: the others wait for it in every layer."""

    @staticmethod
    def mean(load: Mapping[int, float]) -> float:
        return sum(number * share for number, share in load.items())


def uniform_loads(experts: Experts, rows: int, seed: int = 0) -> Loads:
    """Every row chooses `top_k` of all experts alike and by itself. Deterministic by `seed`."""
    return _loads(experts.of, experts.top_k, experts.groups, rows, seed)


@cache
def _loads(of: int, top_k: int, groups: int, rows: int, seed: int) -> Loads:
    import numpy as np

    random = np.random.default_rng(seed)
    chosen = np.zeros((DRAWS, of), bool)
    for _ in range(rows):
        winners = np.argpartition(random.random((DRAWS, of)), top_k, axis=1)[:, :top_k]
        np.put_along_axis(chosen, winners, True, axis=1)
    counts = chosen.reshape(DRAWS, groups, of // groups).sum(axis=2)
    return Loads(device=_shares(counts.reshape(-1)), slowest=_shares(counts.max(axis=1)))


def _shares(counts) -> dict[int, float]:
    import numpy as np

    values, times = np.unique(counts, return_counts=True)
    return {int(value): float(number / len(counts)) for value, number in zip(values, times, strict=True)}
