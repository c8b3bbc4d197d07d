"""The formula of a kind of operation that fits its measured shapes best."""

from __future__ import annotations

from itertools import product

import numpy as np

from schedc.cost.operations import Features


def fitted(rows: list[tuple[Features, float]]) -> tuple[float, dict[str, float], float]:
    """Base, coefficients and mean relative error of the best formula without negative parts, by trying all of them.

    Best is the least sum of deviations, not of their squares (by reweighting): places where a neighbour hides most of
    an operation should not bend the formula.

    A kind that drains the MXU has no other constant. Deviations count relative to the cycles, but not below 50: an
    operation that takes 5 is hidden by its neighbours.
    """
    names = sorted({name for features, _ in rows for name, amount in features.items() if amount})
    cycles = np.array([count for _, count in rows])
    weight = 1.0 / np.maximum(cycles, 50.0)
    columns = np.array([[1.0, *(features.get(name, 0.0) for name in names)] for features, _ in rows])
    best: tuple[float, np.ndarray] = (np.inf, np.zeros(len(names) + 1))
    for used in product((False, True), repeat=len(names) + 1):
        chosen = np.array(used)
        if not chosen.any() or chosen.sum() > len(rows) or (chosen[0] and "drain" in names):
            continue
        trust = np.ones(len(rows))
        for _ in range(20):
            scale = weight * np.sqrt(trust)
            part = np.linalg.lstsq(columns[:, chosen] * scale[:, None], cycles * scale, rcond=None)[0]
            deviation = np.abs(columns[:, chosen] @ part - cycles) * weight
            trust = 1.0 / np.maximum(deviation, 0.001)
        loss = float(deviation.sum())
        if (part >= 0).all() and loss < best[0] - 1e-9:
            best = loss, np.zeros(len(names) + 1)
            best[1][chosen] = part
    error = float(np.mean(np.abs(columns @ best[1] - cycles) * weight))
    rounded = [float(f"{value:.4g}") for value in best[1]]
    return rounded[0], dict(zip(names, rounded[1:], strict=True)), round(error, 3)
