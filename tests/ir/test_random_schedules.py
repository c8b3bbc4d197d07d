"""The proof against the executor on programs that come from no correct one."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest
from random_schedules import random_schedule

from schedc.ir.execute import run, unfold
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
RACES = {"write-while-arriving", "overwrite-while-read", "partial-wait-unproven", "read-while-arriving"}
"""Refused although nothing goes wrong if nobody reads the rows, or if a copy writes what is there already."""


def fails(program: Program, choices: int, seeds: int, seed: int) -> bool:
    """Whether some timing of some scalars shows a fault."""
    rng = random.Random(seed)
    worlds = list(product((0, 1), (0, 1), range(4), range(4)))
    for a, b, c, d in rng.sample(worlds, choices):
        trace = unfold(program, {"on": [a, b], "n": [c, d]})
        if any(run(trace, seed) for seed in range(seeds)):
            return True
    return False


def judge(first: int, count: int) -> Counter[tuple[bool, bool]]:
    """How many are (unsafe, refused). Fails if one is unsafe and accepted, or refused for no reason."""
    judged: Counter[tuple[bool, bool]] = Counter()
    for seed in range(first, first + count):
        text = random_schedule(seed)
        program = parse_program(text)
        verdict = verify(program, LIMITS)
        unsafe = fails(program, 24, 6, seed)
        judged[unsafe, not verdict.proven] += 1
        assert not unsafe or not verdict.proven, f"seed {seed} goes wrong and is accepted:\n{text}"
        if not unsafe and not verdict.proven:
            rules = {refusal.rule for refusal in verdict.refusals}
            assert rules & RACES, f"seed {seed} is refused and does not go wrong: {verdict}\n{text}"
    return judged


def test_what_goes_wrong_is_refused():
    judged = judge(0, 150)
    assert judged[True, True] > 30
    assert judged[False, False] > 50


@pytest.mark.slow
def test_what_goes_wrong_is_refused_at_length():
    judge(10_000, 1000)
