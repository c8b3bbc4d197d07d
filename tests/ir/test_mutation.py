"""Removing a start, wait, signal or barrier from a correct program is refused, or harmless under every timing tried."""

from __future__ import annotations

import pytest
from mutate import removals
from samples import SAMPLES

from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_op
from schedc.ir.verify import verify
from tests.ir.mutation.judge import LIMITS, first_fault
from tests.ir.mutation.programs import WRITTEN
from tests.ir.mutation.programs import program as written

PROGRAMS = {name: parse_program(text) for name, text in SAMPLES.items()} | {name: written(name) for name in WRITTEN}
NAME_ONE_OPERATION = ("transfer-never-awaited", "semaphore-left", "peer-not-started")
NAME_NO_STORAGE = ("wait-never-satisfied", "deadlock", "semaphore-left", "peer-not-started")
CASES = [
    pytest.param(op, mutant, id=f"{name}: {print_op(op)}")
    for name, program in PROGRAMS.items()
    for op, mutant in removals(program)
]


def survives(program: Program, runs: int) -> bool:
    return not first_fault(program, runs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_correct_programs_run_without_a_fault(name):
    assert survives(PROGRAMS[name], 200)


@pytest.mark.parametrize(("op", "mutant"), CASES)
def test_a_removal_is_refused_or_redundant(op, mutant):
    verdict = verify(mutant, LIMITS)
    if verdict.proven:
        assert survives(mutant, 200)
    else:
        first = verdict.refusals[0]
        assert first.place is not None
        assert first.other is not None or first.rule in NAME_ONE_OPERATION
        assert first.storage or first.rule in NAME_NO_STORAGE


@pytest.mark.slow
@pytest.mark.parametrize(("op", "mutant"), CASES)
def test_a_removal_that_is_accepted_survives_a_thousand_runs(op, mutant):
    assert not verify(mutant, LIMITS).proven or survives(mutant, 1000)


def test_a_redundant_guard_may_go():
    """A wait that is split in two is accepted, and harmless."""
    text = SAMPLES["double_buffer"].replace("  wait stored rows=8\n", "  wait stored rows=3\n  wait stored rows=5\n")
    program = parse_program(text)
    assert verify(program, LIMITS).proven
    assert survives(program, 50)
