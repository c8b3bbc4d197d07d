"""Many mutants of a program, judged and counted by kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from schedc.ir.program import Program
from tests.ir.mutation.judge import Judgement, judge
from tests.ir.mutation.registry import KINDS

_TRIES = 20


@dataclass(frozen=True)
class Mutant:
    kind: str
    program: Program


def mutants(program: Program, seed: int, kinds: Iterable[str] = KINDS) -> Iterator[Mutant]:
    """Different mutants, of one kind after the other, until there are no more. The seed decides which."""
    seen = {program}
    left = sorted(kinds)
    for number in count():
        for name in list(left):
            made = _another(program, name, f"{seed} {name} {number}", seen)
            if made is None:
                left.remove(name)
            else:
                seen.add(made)
                yield Mutant(name, made)
        if not left:
            return


def _another(program: Program, name: str, seed: str, seen: set[Program]) -> Program | None:
    rng = random.Random(seed)
    for _ in range(_TRIES):
        made = KINDS[name](program, rng)
        if made is not None and made not in seen:
            return made
    return None


@dataclass
class Count:
    mutants: int = 0
    unsafe: int = 0
    falsely_accepted: int = 0
    safe: int = 0
    refused_by_rule: int = 0
    falsely_refused: int = 0

    def add(self, judgement: Judgement) -> None:
        self.mutants += 1
        self.unsafe += judgement.unsafe
        self.safe += not judgement.unsafe
        self.falsely_accepted += judgement.falsely_accepted
        self.refused_by_rule += judgement.refused_by_rule
        self.falsely_refused += judgement.falsely_refused

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def refused_share(self) -> float:
        """The share of the safe mutants that the proof refuses."""
        return self.falsely_refused / self.safe if self.safe else 0.0


@dataclass
class Campaign:
    """The judgements of one program's mutants."""

    counts: dict[str, Count] = field(default_factory=dict)
    false: list[tuple[Mutant, Judgement]] = field(default_factory=list)
    """Those on which the executor and the proof disagree."""

    def add(self, mutant: Mutant, judgement: Judgement) -> None:
        self.counts.setdefault(mutant.kind, Count()).add(judgement)
        if judgement.falsely_accepted or judgement.falsely_refused:
            self.false.append((mutant, judgement))

    @property
    def total(self) -> Count:
        return sum(self.counts.values(), Count())


def campaign(
    program: Program,
    size: int,
    seed: int,
    runs: int,
    kinds: Iterable[str] = KINDS,
    on_each: Callable[[int], object] = id,
) -> Campaign:
    """The judgements of `size` mutants, or of as many as there are."""
    done, number = Campaign(), 0
    for mutant in mutants(program, seed, kinds):
        judgement = judge(mutant.program, runs)
        if judgement is not None:
            number += 1
            done.add(mutant, judgement)
            on_each(number)
        if number == size:
            break
    return done
