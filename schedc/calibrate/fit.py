"""Least squares of relative errors, by the simulator itself; and what each row would be predicted without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING

from schedc.calibrate.constants import FREE, IN_FLIGHT, Constant, Values
from schedc.calibrate.experiments import Experiment, predict_all
from schedc.target.target import Target

if TYPE_CHECKING:
    import numpy as np

DIFFERENCE = 0.004
"""Of a constant's range: what a derivative is taken over."""

EVALUATIONS = 15
"""Most points with derivatives of one fit; it settles after about ten."""


ALONG = (1.0, 0.3, 0.1)
"""Shares of a step that are tried where a row is left out."""


@dataclass(frozen=True)
class Fit:
    """`residuals`: the weighted logarithms of predicted / measured over `fitted`, then how far constants are from what
    is published of them; `cost` is half the sum of their squares."""

    fitted: tuple[Experiment, ...]
    target: Target
    values: dict[str, float]
    cost: float
    point: np.ndarray
    """Each constant's place in its range, 0 … 1."""
    residuals: np.ndarray
    jacobian: np.ndarray


def fit(experiments: tuple[Experiment, ...], target: Target, in_flight: int) -> Fit:
    """The constants that fit the fitted ones of `experiments` best, with so many transfers in flight."""
    from scipy.optimize import least_squares

    fitted = tuple(experiment for experiment in experiments if experiment.fitted)

    def errors(point: np.ndarray) -> np.ndarray:
        return _residuals(fitted, target, values_at(point, in_flight))

    begin = [min(0.99, max(0.01, (c.start - c.low) / (c.high - c.low))) for c in FREE]
    found = least_squares(
        errors, begin, bounds=(0.0, 1.0), diff_step=DIFFERENCE, xtol=1e-5, ftol=1e-5, max_nfev=EVALUATIONS
    )
    values = values_at(found.x, in_flight)
    return Fit(fitted, target, values, float(found.cost), found.x, found.fun, found.jac)


def leave_one_out(found: Fit, told: Callable[[str], None] = lambda name: None) -> dict[Experiment, float]:
    """Each fitted row as it is predicted by the constants that the other rows give.

    These are a Gauss-Newton step away from those of all rows, as far along it as the others are fitted better for it
    (`ALONG`); costs and predictions are the simulator's.
    """
    import numpy as np

    left = {}
    in_flight = round(found.values[IN_FLIGHT])
    for number, experiment in enumerate(found.fitted):
        told(experiment.name)
        others = np.arange(len(found.residuals)) != number
        step, *_ = np.linalg.lstsq(found.jacobian[others], -found.residuals[others], rcond=1e-6)
        points = [np.clip(found.point + share * step, 0.0, 1.0) for share in ALONG]
        residuals = [_residuals(found.fitted, found.target, values_at(point, in_flight)) for point in points]
        tried = [(float(np.sum(r[others] ** 2)), r[number]) for r in (found.residuals, *residuals)]
        left[experiment] = experiment.row.number * exp(min(tried)[1] * experiment.sigma)
    return left


def _residuals(fitted: tuple[Experiment, ...], target: Target, values: Values) -> np.ndarray:
    import numpy as np

    predicted = predict_all(fitted, target, values)
    rows = [log(value / e.row.number) / e.sigma for e, value in zip(fitted, predicted, strict=True)]
    return np.array([*rows, *(_from_published(constant, values) for constant in FREE if constant.published)])


def _from_published(constant: Constant, values: Values) -> float:
    assert constant.published is not None
    return (values[constant.figure] - constant.published) / constant.spread


def values_at(point: np.ndarray, in_flight: int) -> dict[str, float]:
    found = {c.figure: float(c.low + x * (c.high - c.low)) for c, x in zip(FREE, point, strict=True)}
    return found | {IN_FLIGHT: float(in_flight)}
