"""The stream after a layer is compared row by row, and the first layer and element that differ are named."""

import numpy as np
import pytest

from schedc.compiler.streams import EXACT, Streams, stream_problems

ROWS, HIDDEN = 2, 5


def streams(rounding: float = 0.0, scale: float = 1.0) -> Streams:
    exact = scale * np.linspace(-1.0, 1.0, 3 * ROWS * HIDDEN).reshape(3, ROWS, HIDDEN)
    return Streams((0, 2, 4), exact.copy(), exact, exact + rounding)


def test_the_same_stream_has_no_problems():
    assert stream_problems(streams(), (True, True)) == []


def test_the_first_layer_and_element_of_a_row_are_named():
    made = streams()
    made.got[1, 1, 3] += 0.5
    made.got[1, 1, 4] += 0.7
    made.got[2, 1, 0] += 9.0
    (said,) = stream_problems(made, (True, True))
    assert said.startswith("layer 2: the stream after it of row 1 differs, first in element 3: ")
    assert "largest difference 0.7, limit 0.002" in said
    assert stream_problems(made, (True, False)) == [], "an inactive row says nothing"


def test_what_is_no_number_differs():
    made = streams()
    made.got[0, 0, 2] = np.nan
    (said,) = stream_problems(made, (True, True))
    assert said.startswith("layer 0: the stream after it of row 0 differs, first in element 2: nan")


@pytest.mark.parametrize(
    ("rounding", "scale", "limit"), [(0.0, 1.0, EXACT), (0.25, 1.0, EXACT + 0.5), (0.0, 8.0, 8 * EXACT)]
)
def test_a_difference_may_be_as_large_as_rounding_and_the_size_of_the_stream_let_it(
    rounding: float, scale: float, limit: float
):
    made = streams(rounding, scale)
    assert made.limit(2, (True, True)) == pytest.approx(limit)
    made.got[2, 0, 1] += 0.9 * limit
    assert stream_problems(made, (True, True)) == []
    made.got[2, 0, 1] += 0.2 * limit
    assert len(stream_problems(made, (True, True))) == 1


def test_no_active_row_is_compared_with_nothing():
    assert streams().limit(0, (False, False)) == EXACT and stream_problems(streams(), (False, False)) == []
