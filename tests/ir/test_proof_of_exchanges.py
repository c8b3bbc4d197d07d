"""What the proof leaves out of devices and loops changes nothing: against the proof in full, and the executor."""

from __future__ import annotations

import pytest
from in_full import LIMITS, judge
from random_exchanges import random_exchange
from random_experts import random_experts

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import induction, verify


@pytest.fixture(autouse=True)
def short_loops_are_proven_by_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "_FEW_TRIPS", 2)


def test_what_goes_wrong_is_refused_as_without_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge(random_exchange, 0, 60, monkeypatch)
    assert judged[True, True] > 15
    assert judged[False, False] > 10


def test_what_goes_wrong_with_experts_is_refused_as_without_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge(random_experts, 0, 16, monkeypatch)
    assert judged[True, True] > 5
    assert judged[False, False] > 4


def test_loops_over_experts_are_proven_by_induction() -> None:
    safe = (4, 10, 12, 22, 23, 28, 29, 30, 31, 34)
    verdicts = [verify(parse_program(random_experts(seed, 40)), LIMITS) for seed in safe]
    assert all(verdict.proven and verdict.statistics.skipped_iterations >= 30 for verdict in verdicts)


@pytest.mark.parametrize(
    ("writer", "count"),
    [
        pytest.param(random_exchange, 400, marks=pytest.mark.slow),
        pytest.param(random_experts, 60, marks=pytest.mark.slow),
        pytest.param(random_exchange, 2000, marks=pytest.mark.long),
        pytest.param(random_experts, 2000, marks=pytest.mark.long),
    ],
)
def test_what_goes_wrong_is_refused_as_without_induction_at_length(
    writer, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(writer, 10_000, count, monkeypatch)
