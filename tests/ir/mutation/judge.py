"""What the executor and the proof say of a mutant."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from schedc.ir.execute import run, unfold
from schedc.ir.program import Compute, Program, walk
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)

INPUTS = 32
"""Choices of the input scalars: all low, all high, others at random."""
FEW_RUNS, MANY_RUNS = 64, 256
"""Of a mutant that seems safe, whatever the proof says of it."""
MOST_RUNS = 1000
"""Of one that the proof refuses although it seems safe: some races are seen once in a hundred runs."""

NOT_OF_TIMING = {
    "constant-written": "a declared contract",
    "capacity": "the executor has as much memory as the program wants",
    "malformed": "a contract of the IR",
    "misaligned": "the hardware's tiles",
    "operand-overlap": "the executor reads all operands of a computation before it writes any",
    "weight-written": "a declared contract",
}
"""Rules whose refusals are right although no timing shows a fault, and why."""


@dataclass(frozen=True)
class Judgement:
    fault: str
    """What the executor found, empty if nothing."""
    refusals: tuple[str, ...]
    rules: frozenset[str]

    @property
    def unsafe(self) -> bool:
        return bool(self.fault)

    @property
    def accepted(self) -> bool:
        return not self.refusals

    @property
    def falsely_accepted(self) -> bool:
        return self.unsafe and self.accepted

    @property
    def refused_by_rule(self) -> bool:
        """Refused for a reason that no timing shows."""
        return not self.unsafe and bool(self.rules & NOT_OF_TIMING.keys())

    @property
    def falsely_refused(self) -> bool:
        return not self.unsafe and not self.accepted and not self.refused_by_rule


def judge(program: Program, runs: int) -> Judgement | None:
    """None if the program takes too long to run."""
    fault = first_fault(program, runs)
    if fault.startswith("too-long"):
        return None
    verdict = verify(program, LIMITS)
    said = tuple(map(str, verdict.refusals)), frozenset(refusal.rule for refusal in verdict.refusals)
    judgement = Judgement(fault, *said)
    if judgement.falsely_refused:
        return Judgement(first_fault(program, MOST_RUNS), *said)
    return judgement


def inputs(program: Program, number: int) -> dict[str, list[int]]:
    """Values of the input scalars: 0 is all low, 1 is all high, others are drawn, extremes as often as the rest."""
    rng = random.Random(number)
    drawn = {}
    for declared in program.scalars:
        if declared.role == "input":
            low, high = declared.low, declared.high
            one_of = (
                [(low, high)[number]] if number < 2 else [low, high, rng.randint(low, high), rng.randint(low, high)]
            )
            drawn[declared.name] = [rng.choice(one_of) for _ in range(declared.length)]
            if declared.distinct:
                drawn[declared.name] = rng.sample(range(low, high + 1), declared.length)
    return drawn


def first_fault(program: Program, runs: int) -> str:
    """The first fault of so many runs over several inputs, in words; empty if there is none."""
    return next(_faults(program, runs), "")


def _faults(program: Program, runs: int) -> Iterator[str]:
    computed = any(isinstance(op, Compute) and op.sets for op in walk(program.body))
    choices = INPUTS if computed or any(declared.role == "input" for declared in program.scalars) else 1
    traces = []
    for seed in range(runs):
        number = seed % choices
        if number == len(traces):
            traces.append(unfold(program, inputs(program, number), number))
        for fault in run(traces[number], seed):
            yield f"{fault.kind}: {fault.detail}"
