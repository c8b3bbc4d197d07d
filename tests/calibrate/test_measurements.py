"""Files of measurements: read as they are, refused with the place of what is wrong."""

from pathlib import Path

import pytest

from schedc.calibrate.bench_rows import append_rows, rows_of
from schedc.calibrate.experiments import experiments
from schedc.calibrate.kernels import digest, kernel_of
from schedc.cost.calibration.measurements import COLUMNS, measurements
from schedc.errors import UserError
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.run.bench import Timing
from tests.reference.small_specs import small_spec

HEADER = ",".join(COLUMNS)
PROGRAM = """program add {
  pool work rows=8
  buffer total in work rows=8 slots=1 align=8 at 0
  compute zero(out: write total[0 +: 8])
}
"""


def test_the_published_rows_are_all_there_and_a_range_stands_for_its_middle() -> None:
    rows = measurements()
    assert len(rows) == 194
    (phase,) = (row for row in rows if row.metric == "per phase")
    assert (phase.value, phase.number) == ("3.5-4.7", pytest.approx(4.1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "mine.csv: the columns must be model, .*; found a, b"),
        (f"{HEADER}\nm,f,1,2\n", "mine.csv:2: must have 9 columns"),
        (f"{HEADER}\nm,f,1,2,1,step,soon,ms,me\n", "mine.csv:2: value 'soon' is no number"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        measurements(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv: cannot be read"):
        measurements(tmp_path / "none.csv")


def test_timed_rows_are_appended_in_the_form_of_the_published_ones_and_can_be_calibrated_by(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    spec, shape = small_spec(), StepShape(2, 64)
    for step_us in (900.0, 800.0):
        append_rows(path, rows_of(Timing(16, 8, step_us, 780.0, 950.0, 51.0), spec, shape, PROGRAM, 33))
    rows = measurements(path)
    assert [row.value for row in rows if row.metric == "step"] == ["0.9000", "0.8000"]
    assert (rows[0].batch, rows[0].context, rows[0].devices, rows[0].unit) == ("2", "64", "1", "ms")
    assert kernel_of(rows[0]) == (digest(PROGRAM), 33)
    known = list(experiments(rows, {digest(PROGRAM): parse_program(PROGRAM)}))
    assert [(e.row, e.fitted) for e in known] == [(rows[0], True), (rows[4], True)]
    assert list(experiments(rows)) == [], "of a kernel that is not given nothing is predicted"


def test_rows_are_not_appended_to_something_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("my notes\n")
    with pytest.raises(UserError, match="the columns must be"):
        append_rows(path, rows_of(Timing(1, 1, 1.0, 1.0, 1.0, 1.0), small_spec(), StepShape(1, 64), PROGRAM, 0))
    assert path.read_text() == "my notes\n"
