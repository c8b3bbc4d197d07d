"""The fit finds constants that rows were made with, and says what a row is predicted without it."""

from dataclasses import replace

import pytest

from schedc.calibrate.constants import FREE, IN_FLIGHT
from schedc.calibrate.experiments import experiments, predict_all
from schedc.calibrate.fit import fit, leave_one_out
from schedc.cost.calibration.measurements import measurements

KNOWN = {
    "hbm_stream_gb_s": 3400.0, "dma_descriptor_ns": 40.0, "sibling_latency_us": 1.5, "link_latency_us": 1.6,
    "link_hop_us": 0.1, "link_shared_gb_s": 90.0, "exchange_skew_us": 1.0, "step_us": 70.0,
    IN_FLIGHT: 16.0,
}  # fmt: skip
QUICK = ("all-reduce", "all-gather", "time")


@pytest.fixture(scope="module")
def made_up(target):
    """Collectives and copies, with the times that `KNOWN` gives them as if they were measured."""
    found = tuple(e for e in experiments(measurements()) if e.row.metric in QUICK)
    times = predict_all(found, target, KNOWN)
    return tuple(
        replace(e, row=replace(e.row, value=f"{time:.6f}"), fitted=True) for e, time in zip(found, times, strict=True)
    )


@pytest.fixture(scope="module")
def found(made_up, target):
    return fit(made_up, target, in_flight=16)


def test_the_constants_of_links_are_found_again(found, made_up, target) -> None:
    assert found.values["link_shared_gb_s"] == pytest.approx(90.0, rel=0.02)
    assert found.values["link_latency_us"] == pytest.approx(1.6, rel=0.05)
    assert found.values["sibling_latency_us"] == pytest.approx(1.5, rel=0.05)
    for experiment, time in zip(made_up, predict_all(made_up, target, found.values), strict=True):
        assert time == pytest.approx(experiment.row.number, rel=0.01), experiment.name


def test_every_constant_stays_within_what_is_plausible(found) -> None:
    assert all(c.low <= found.values[c.figure] <= c.high for c in FREE)


def test_a_row_that_is_wrong_is_predicted_by_the_others_as_it_should_be(found, made_up, target) -> None:
    """Of one row a fifth too long: without it the others say what it takes; the fit to all of them is drawn to it."""
    wrong = next(e for e in made_up if e.name.startswith("all-reduce: RS+AG f32, [64 x 4096]"))
    rows = tuple(replace(e, row=replace(e.row, value=f"{e.row.number * 1.2}")) if e is wrong else e for e in made_up)
    drawn = fit(rows, target, in_flight=16)
    told: list[str] = []
    (alone,) = leave_one_out(drawn, (e for e in rows if e.name == wrong.name), told.append).values()
    (with_it,) = predict_all((wrong,), target, drawn.values)
    assert told == [wrong.name]
    assert alone == pytest.approx(wrong.row.number, rel=0.04)
    assert with_it > 1.02 * alone
