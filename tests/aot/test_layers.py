"""The example with a switch over layer kinds from a table: the next layer's kind says what is fetched ahead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schedc.ir.text_parse import parse_program
from tests.aot.devices import compiled, example, interpreted, replaced

pytestmark = pytest.mark.kernel

KIND, PLACE = (0, 1, 1, 0, 2, 1), (0, 1, 3, 5, 6, 9)
UNROLLED = (("loop layer < 6 {", "loop layer < 6 unroll {"),)


def expected(hidden: np.ndarray, weights: np.ndarray) -> np.ndarray:
    x = hidden
    for kind, place in zip(KIND, PLACE, strict=True):
        first, second = weights[8 * place : 8 * place + 8], weights[8 * place + 8 : 8 * place + 16]
        x = [lambda x, a, b: x + a / 2, lambda x, a, b: x + a - 2 * b, lambda x, a, b: x - a][kind](x, first, second)
    return x


@pytest.mark.parametrize("changes", [(), UNROLLED])
def test_every_layer_computes_what_its_kind_says(changes: tuple[tuple[str, str], ...]) -> None:
    values = np.random.default_rng(0)
    hidden, weights = (values.integers(-64, 64, (rows, 128)).astype(np.float32) for rows in (8, 88))
    words = {"hidden": hidden.view(np.int32)[None], "weights": weights.view(np.int32)[None]}
    for mode, answer in interpreted(replaced(example("layers"), *changes), words).items():
        assert np.array_equal(answer.outputs["out"][0].view(np.float32), expected(hidden, weights)), mode
        assert not answer.raced, mode


@pytest.mark.parametrize("changes", [(), UNROLLED])
def test_the_compiler_keeps_the_programs_order_of_transfers(
    changes: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    report, differences = compiled(parse_program(replaced(example("layers"), *changes)), tmp_path)
    assert differences == []
    rows = [t.rows for t in report.transfers if t.kind == "start" and t.line]
    assert rows == ([8, 8, 16, 16, 8, 8, 16, 8] if changes else [8, 8, 8, 16, 8, 8])
