"""Of programs with one fault in them, the proof accepts none that the executor shows unsafe."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest

from tests.ir.mutation.campaign import Campaign, Count, campaign, mutants
from tests.ir.mutation.differences import difference
from tests.ir.mutation.judge import FEW_RUNS, LIMITS, first_fault, verify
from tests.ir.mutation.programs import LONG, PROGRAMS, program
from tests.ir.mutation.registry import KINDS

MUTANTS, SEED = 200, 1


@cache
def judged(name: str) -> Campaign:
    return campaign(program(name), MUTANTS, SEED, FEW_RUNS)


def told(name: str, accepted: bool) -> str:
    """The mutants on which the two disagree."""
    return "\n\n".join(
        "\n".join(
            [f"{mutant.kind}: {judgement.fault}", *difference(program(name), mutant.program), *judgement.refusals]
        )
        for mutant, judgement in judged(name).false
        if judgement.accepted == accepted
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_without_a_fault_is_proven_and_runs(name: str) -> None:
    assert str(verify(program(name), LIMITS)) == "proven"
    assert first_fault(program(name), 200) == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_unsafe_mutant_is_accepted(name: str) -> None:
    assert judged(name).total.mutants == MUTANTS
    assert not told(name, accepted=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_third_of_the_mutants_is_unsafe(name: str) -> None:
    total = judged(name).total
    assert total.unsafe >= 0.3 * total.mutants


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_no_unsafe_mutant_of_a_long_program_is_accepted(name: str) -> None:
    found = campaign(program(name), 60, SEED, 16)
    assert found.total.unsafe >= 30
    assert not [mutant for mutant, judgement in found.false if judgement.accepted]


def test_every_kind_is_unsafe_somewhere() -> None:
    unsafe = {kind for name in PROGRAMS for kind, count in judged(name).counts.items() if count.unsafe}
    assert unsafe == KINDS.keys()


def test_hardly_any_safe_mutant_is_refused() -> None:
    total = sum((judged(name).total for name in PROGRAMS), Count())
    assert total.refused_share < 0.02, "\n\n".join(told(name, accepted=False) for name in PROGRAMS)


def test_the_same_seed_gives_the_same_mutants() -> None:
    for name in PROGRAMS:
        assert list(islice(mutants(program(name), 3), 20)) == list(islice(mutants(program(name), 3), 20))
