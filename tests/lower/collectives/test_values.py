"""What collectives compute, interpreted on virtual devices in both DMA modes with the race detector on."""

from __future__ import annotations

import numpy as np
import pytest

from schedc.ir.text_print import print_program
from tests.aot.devices import interpreted
from tests.eight_devices import EIGHT_DEVICES
from tests.lower.collectives.programs import Case, cases, means, program

pytestmark = pytest.mark.kernel

TOLERANCE = {"f32": 1e-6, "bf16": 2e-2}
"""Of the largest value: eight roundings to bf16, one after the other."""


def named(case: Case) -> str:
    return f"{case.algorithm}-{case.kind}-{case.wire}-{case.devices}"


def given(case: Case) -> np.ndarray:
    values = np.random.default_rng(case.devices).normal(size=(case.devices, case.exchanged.rows * case.pieces, 128))
    return values.astype(np.float32)


def check(case: Case) -> None:
    x = given(case)
    answers = interpreted(print_program(program(case)), {"given": x.view(np.int32)}, seconds=300)
    wanted = dict(zip(("left", "last"), means(case, x), strict=True))
    sent = np.arange(x.shape[1]) % 8 < (case.used or 8)
    for mode, answer in answers.items():
        assert not answer.raced, answer.log
        for name, every in wanted.items():
            found, value = answer.outputs[name].view(np.float32), every
            if case.used:
                found, value = found[:, sent], value[:, sent]
            assert np.abs(found - value).max() <= TOLERANCE[case.wire] * np.abs(value).max(), (mode, name)
        if case.kind == "all_reduce" and case.group.size == case.devices:
            same = answer.outputs["last"][:, sent]
            assert np.array_equal(same, np.broadcast_to(same[:1], same.shape)), "devices have different sums"


FEW = [
    Case("one_shot", "all_reduce", 2, "bf16", pieces=2, rows=24, used=1),
    Case("two_phase", "all_reduce", 4, pieces=2, rows=40, used=3),
    Case("two_phase", "all_reduce", 4, "bf16", rows=40, used=1),
    Case("hierarchical", "all_reduce", 4, "bf16"),
    Case("ring", "all_reduce", 4, "bf16"),
    Case("ring", "all_gather", 4),
    Case("hierarchical", "reduce_scatter", 4),
    Case("one_shot", "exchange", 4, "bf16", stride=2),
]


@pytest.mark.parametrize("case", FEW, ids=named)
def test_the_values_on_two_and_four_devices(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in cases(4) if case not in FEW], ids=named)
def test_the_values_of_all_others_on_four_devices(case: Case) -> None:
    check(case)


ON_EIGHT = (
    *(case for case in cases(8) if case.kind == "all_reduce" and case.wire == "bf16"),
    Case("hierarchical", "all_gather", 8),
    Case("hierarchical", "reduce_scatter", 8, "bf16"),
    Case("two_phase", "all_reduce", 8, size=4, stride=2),
    Case("ring", "all_reduce", 6, size=3),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=named(case), marks=EIGHT_DEVICES) for case in ON_EIGHT])
def test_the_values_on_eight_devices(case: Case) -> None:
    check(case)
