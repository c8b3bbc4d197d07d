"""What the proof leaves out changes nothing: against the proof that executes everything, and against the executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from schedc.ir.execute import run, unfold
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, Verdict, induction, verify
from schedc.ir.verify.devices import prove
from schedc.ir.verify.devices.frontier import view_of
from schedc.ir.verify.devices.twins import Twins
from schedc.ir.verify.machine import Machine

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
RACES = {"write-while-arriving", "overwrite-while-read", "partial-wait-unproven", "read-while-arriving"}
"""Refused although nothing goes wrong if nobody reads the rows, or if a copy writes what is there already."""


def in_full(program: Program, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The proof that executes every iteration on every device, and looks from each at all others."""
    with monkeypatch.context() as patched:
        patched.setattr(induction, "_ATTEMPTS", 0)
        patched.setattr(Twins, "have", lambda *_: False)
        patched.setattr(prove, "views_of", lambda traces: [view_of(traces, rank) for rank in range(len(traces))])
        patched.setattr(prove, "Placed", lambda context, rank, world, peers, _: Machine(context, rank, world, peers))
        return verify(program, LIMITS)


def goes_wrong(program: Program, draws: int, seeds: int) -> str:
    inputs = {scalars.name for scalars in program.scalars if scalars.role == "input"}
    for draw in range(draws):
        values = {"on": [draw % 2], "n": [draw % 4]}
        trace = unfold(program, {name: values[name] for name in sorted(inputs)}, draw)
        for seed in range(seeds):
            if faults := run(trace, seed):
                return str(faults[0])
    return ""


def judge(
    writer: Callable[[int], str], first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> Counter[tuple[bool, bool]]:
    """How many are (unsafe, refused). Fails where the verdicts differ, or one is wrong."""
    judged: Counter[tuple[bool, bool]] = Counter()
    for seed in range(first, first + count):
        text = writer(seed)
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
