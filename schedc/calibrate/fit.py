"""Least squares of relative errors, by the simulator itself; and what each row would be predicted without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log

from schedc.calibrate.constants import FREE, IN_FLIGHT, Constant, Values
from schedc.calibrate.experiments import Experiment, predict_all
from schedc.target.target import Target

DIFFERENCE = 0.004
"""Of a constant's range: what a derivative is taken over."""

EVALUATIONS = 15
"""Most points with derivatives of one fit; it settles after about ten."""


ALONE_EVALUATIONS, ALONE_DIFFERENCE = 4, 0.02
"""Of a fit to all rows but one, which begins at the constants of all: over a wider difference, as waits make kinks."""


@dataclass(frozen=True)
class Fit:
    """`cost`: half the sum of squares of the weighted logarithms of predicted / measured over `fitted`, and of how far
    constants are from what is published of them."""

    fitted: tuple[Experiment, ...]
    target: Target
    values: dict[str, float]
    cost: float
    point: tuple[float, ...]
    """Each constant's place in its range, 0 … 1."""


def fit(experiments: tuple[Experiment, ...], target: Target, in_flight: int) -> Fit:
    """The constants that fit the fitted ones of `experiments` best, with so many transfers in flight."""
    fitted = tuple(experiment for experiment in experiments if experiment.fitted)
    begin = [min(0.99, max(0.01, (c.start - c.low) / (c.high - c.low))) for c in FREE]
    point, cost = _least(fitted, target, in_flight, begin, EVALUATIONS, DIFFERENCE)
    return Fit(fitted, target, values_at(point, in_flight), cost, tuple(point))


def leave_one_out(
    found: Fit, rows: Iterable[Experiment], told: Callable[[str], None] = lambda name: None
) -> dict[Experiment, float]:
    """Each of `rows` as it is predicted by constants that were fitted again to the other fitted rows."""
    left, in_flight = {}, round(found.values[IN_FLIGHT])
    for experiment in rows:
        told(experiment.name)
        others = tuple(other for other in found.fitted if other is not experiment)
        point, _ = _least(others, found.target, in_flight, found.point, ALONE_EVALUATIONS, ALONE_DIFFERENCE)
        (left[experiment],) = predict_all((experiment,), found.target, values_at(point, in_flight))
    return left


def _least(
    fitted: tuple[Experiment, ...],
    target: Target,
    in_flight: int,
    begin: Sequence[float],
    evaluations: int,
    difference: float,
) -> tuple[list[float], float]:
    from scipy.optimize import least_squares

    def errors(point: Sequence[float]) -> list[float]:
        return _residuals(fitted, target, values_at(point, in_flight))

    inside = [min(0.999, max(0.001, place)) for place in begin]
    found = least_squares(
        errors, inside, bounds=(0.0, 1.0), diff_step=difference, xtol=1e-5, ftol=1e-5, max_nfev=evaluations
    )
    return [float(place) for place in found.x], float(found.cost)


def _residuals(fitted: tuple[Experiment, ...], target: Target, values: Values) -> list[float]:
    predicted = predict_all(fitted, target, values)
    rows = [log(value / e.row.number) / e.sigma for e, value in zip(fitted, predicted, strict=True)]
    return [*rows, *(_from_published(constant, values) for constant in FREE if constant.published)]


def _from_published(constant: Constant, values: Values) -> float:
    assert constant.published is not None
    return (values[constant.figure] - constant.published) / constant.spread


def values_at(point: Sequence[float], in_flight: int) -> dict[str, float]:
    found = {c.figure: float(c.low + x * (c.high - c.low)) for c, x in zip(FREE, point, strict=True)}
    return found | {IN_FLIGHT: float(in_flight)}
