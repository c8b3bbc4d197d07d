"""Whatever the interpreter finds in a kernel with one fault in its schedule, the proof refuses."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest

from schedc.compiler import interpret as interpreting
from schedc.compiler.interpret import MODES, addressed, interpret
from schedc.compiler.pipeline import Request, limits_of
from schedc.compiler.shrink import Shrunk, shrink
from schedc.ir.program import Program
from schedc.ir.verify import verify
from schedc.lower.graph import StepShape
from schedc.target.target import parse_target
from tests.ir.mutation.campaign import Mutant, mutants
from tests.ir.mutation.differences import difference
from tests.reference.small_specs import small_spec

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SAMPLE, SEED = 12, 4
TARGET = parse_target("tpu7x")
SETTINGS = {"depth": 3, "slot_mib": 0.05}
OF_TIMING = (
    *("drop-wait", "move-wait", "double-wait", "wrong-semaphore-of-wait", "wait-for-other-rows"),
    *("one-semaphore-for-all", "overlap-buffers", "shrink-live-range", "forget-the-loop", "shift-address"),
    *("copy-more-rows", "guard-by-one"),
)
"""Kinds that change when something happens or where it lies, but not what is computed: a right value stays right."""


@pytest.fixture(scope="module", autouse=True)
def patience() -> None:
    interpreting.STUCK_SECONDS = 15.0


@cache
def small() -> Shrunk:
    spec = small_spec(mixer={"kv_heads": 1}, feed_forward={"width": 1000})
    return shrink(Request(spec, TARGET, StepShape(1, 64), "ring", SETTINGS), "f32")


@cache
def right() -> Program:
    return addressed(small(), TARGET)


@cache
def sample() -> list[Mutant]:
    return list(islice(mutants(right(), SEED, OF_TIMING), SAMPLE))


def accepted(number: int) -> bool:
    return verify(sample()[number].program, limits_of(TARGET)).proven


@cache
def found(number: int) -> tuple[str, ...]:
    """What the interpreter reports in either mode, each in a process of its own with 300 seconds."""
    runs = [interpret(small(), sample()[number].program, mode, 300) for mode in MODES]
    return tuple(f"{run.mode}: {problem}" for run in runs for problem in run.problems)


@pytest.mark.parametrize("number", range(SAMPLE))
def test_what_the_interpreter_finds_is_refused(number: int) -> None:
    if accepted(number):
        assert found(number) == (), "\n".join(difference(right(), sample()[number].program))


def test_the_sample_has_mutants_that_run_and_mutants_that_do_not() -> None:
    right = [number for number in range(SAMPLE) if accepted(number)]
    assert len(right) >= 3
    assert len(list(islice((n for n in range(SAMPLE) if n not in right and found(n)), 4))) == 4
