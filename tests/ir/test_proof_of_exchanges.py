"""What the proof of many devices leaves out changes nothing: against the proof without, and against the executor."""

from __future__ import annotations

from collections import Counter

import pytest
from random_exchanges import random_exchange

from schedc.ir.execute import run, unfold
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, Verdict, induction, verify
from schedc.ir.verify.devices import prove
from schedc.ir.verify.devices.frontier import view_of
from schedc.ir.verify.machine import Machine

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
RACES = {"write-while-arriving", "overwrite-while-read", "partial-wait-unproven", "read-while-arriving"}
"""Refused although nothing goes wrong if nobody reads the rows, or if a copy writes what is there already."""


@pytest.fixture(autouse=True)
def short_loops_are_proven_by_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "_FEW_TRIPS", 2)


def in_full(program: Program, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The proof that executes every iteration that communicates on every device, and looks from each at all others."""
    with monkeypatch.context() as patched:
        patched.setattr(Machine, "inducts", False)
        patched.setattr(prove, "views_of", lambda traces: [view_of(traces, rank) for rank in range(len(traces))])
        patched.setattr(prove, "Placed", lambda context, rank, world, peers, _: Machine(context, rank, world, peers))
        return verify(program, LIMITS)


def goes_wrong(program: Program, draws: int, seeds: int) -> str:
    for draw in range(draws):
        trace = unfold(program, {"on": [draw % 2], "n": [draw % 4]}, draw)
        for seed in range(seeds):
            if faults := run(trace, seed):
                return str(faults[0])
    return ""


def judge(first: int, count: int, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[bool, bool]]:
    """How many are (unsafe, refused)."""
    judged: Counter[tuple[bool, bool]] = Counter()
    for seed in range(first, first + count):
        text = random_exchange(seed)
        program = parse_program(text)
        verdict, full = verify(program, LIMITS), in_full(program, monkeypatch)
        assert verdict.proven == full.proven, f"seed {seed}: {verdict}\nin full: {full}\n{text}"
        fault = goes_wrong(program, 4, 8)
        judged[bool(fault), not verdict.proven] += 1
        assert not fault or not verdict.proven, f"seed {seed} goes wrong and is accepted: {fault}\n{text}"
        if not fault and not verdict.proven:
            rules = {refusal.rule for refusal in verdict.refusals}
            assert rules & RACES, f"seed {seed} is refused and does not go wrong: {verdict}\n{text}"
    return judged


def test_what_goes_wrong_is_refused_as_without_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge(0, 60, monkeypatch)
    assert judged[True, True] > 15
    assert judged[False, False] > 10


@pytest.mark.slow
def test_what_goes_wrong_is_refused_as_without_induction_at_length(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(10_000, 2000, monkeypatch)
