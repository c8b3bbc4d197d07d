"""Removing any start, wait or signal from a correct program is refused, or harmless under every timing tried."""

from __future__ import annotations

import random

import pytest
from mutate import removals
from samples import SAMPLES

from schedc.ir.execute import run, unfold
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.text_print import print_op
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
CASES = [
    pytest.param(op, mutant, id=f"{name}: {print_op(op)}")
    for name, text in SAMPLES.items()
    for op, mutant in removals(parse_program(text))
]


def scalars(program: Program, seed: int) -> dict[str, list[int]]:
    rng = random.Random(seed)
    return {
        declared.name: [
            rng.choice((declared.low, declared.high, rng.randint(declared.low, declared.high)))
            for _ in range(declared.length)
        ]
        for declared in program.scalars
        if declared.role == "input"
    }


def survives(program: Program, runs: int) -> bool:
    return not any(run(unfold(program, scalars(program, seed)), seed) for seed in range(runs))


@pytest.mark.parametrize("name", SAMPLES)
def test_correct_programs_run_without_a_fault(name):
    assert survives(parse_program(SAMPLES[name]), 200)


@pytest.mark.parametrize(("op", "mutant"), CASES)
def test_a_removal_is_refused_or_redundant(op, mutant):
    verdict = verify(mutant, LIMITS)
    if verdict.proven:
        assert survives(mutant, 200)
    else:
        first = verdict.refusals[0]
        assert first.place is not None
        assert first.other is not None or first.rule == "transfer-never-awaited"
        assert first.storage or first.rule == "wait-never-satisfied"


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
