"""The table that `schedc calibrate` prints, made once."""

import pytest

from schedc.calibrate.shipped import shipped_values
from schedc.calibrate.table import Table, table
from schedc.cost.calibration.measurements import measurements
from schedc.target.target import parse_target


@pytest.fixture(scope="session")
def target():
    return parse_target("tpu7x:2x2x1", 8)


@pytest.fixture(scope="session")
def values(target) -> dict[str, float]:
    return shipped_values(target)


@pytest.fixture(scope="session")
def made(target, values) -> Table:
    return table(measurements(), target, values)
