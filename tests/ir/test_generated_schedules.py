"""Generated schedules are proven, and lose their proof with any one transfer or wait that they need."""

from __future__ import annotations

from functools import cache

import pytest
from mutate import removals
from test_mutation import survives

from schedc.ir.allocate import allocate
from schedc.ir.program import Op, Program, Start, Wait
from schedc.ir.text_print import print_op
from schedc.ir.verify import Limits, verify
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target
from tests.one_device import models_for_every_policy

POLICIES = ("ring", "double_buffer", "just_in_time")
TARGET = parse_target("tpu7x")
CAPABILITY = TARGET.capability
LIMITS = Limits(
    CAPABILITY.vmem_usable_bytes,
    CAPABILITY.smem_usable_bytes,
    CAPABILITY.semaphores,
    CAPABILITY.vmem_internal_bytes,
)
CASES = [
    pytest.param(
        model, policy, rows, id=f"{model}-{policy}-{rows}",
        marks=() if model == "smollm2-135m" or (policy, rows) == ("ring", 1) else pytest.mark.slow,
    )
    for model in models_for_every_policy() for policy in POLICIES for rows in (1, 8, 16)
]  # fmt: skip


def generate(spec: ModelSpec, rows: int, context: int, policy: str) -> Program:
    return allocate(schedule(spec, StepShape(rows, context), TARGET, policy).program, capacity_rows(TARGET))


@cache
def three_layers(policy: str, context: int = 4096) -> Program:
    """SmolLM2 with 3 of its 30 layers, for 2 rows; three full tiles of the cache unless `context` is less."""
    spec = load_spec("smollm2-135m")
    runs = tuple(run.model_copy(update={"repeat": 3}) for run in spec.layers)
    return generate(spec.model_copy(update={"layers": runs}), 2, context, policy)


@cache
def mutants(policy: str) -> list[tuple[Op, Program]]:
    return list(removals(three_layers(policy)))


def accepted(policy: str) -> list[Program]:
    return [mutant for _, mutant in mutants(policy) if verify(mutant, LIMITS).proven]


@pytest.mark.parametrize(("model", "policy", "rows"), CASES)
def test_every_model_is_proven_under_every_policy(model, policy, rows):
    assert str(verify(generate(load_spec(model), rows, 4096, policy), LIMITS)) == "proven"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_three_layers_run_without_a_fault(policy):
    assert verify(three_layers(policy), LIMITS).proven
    assert survives(three_layers(policy), 20)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_removal_is_refused_by_name_or_redundant(policy):
    for op, mutant in mutants(policy):
        verdict = verify(mutant, LIMITS)
        if verdict.proven:
            assert survives(mutant, 20), print_op(op)
            continue
        first = verdict.refusals[0]
        assert isinstance(op, (Start, Wait))
        assert first.place is not None
        assert str(first.place) in str(first)
        if first.rule == "transfer-never-awaited" and first.other is None:
            # No operation but the start mentions the semaphore.
            assert isinstance(op, Wait)
            assert f"rows of {op.semaphore.name}" in first.repair
        else:
            assert first.other is not None, first
            assert str(first.other) in str(first)
        assert (first.storage and first.storage in first.what) or op.semaphore.name in first.what


@pytest.mark.parametrize("policy", POLICIES)
def test_every_transfer_and_every_wait_is_needed(policy):
    assert len(mutants(policy)) > 20
    assert accepted(policy) == []


def test_transfers_of_a_loop_that_never_runs_are_redundant():
    """One tile covers the whole context, so no tile is ever full before the newest."""
    program = three_layers("ring", 256)
    harmless = [op for op, mutant in removals(program) if verify(mutant, LIMITS).proven]
    assert harmless
    assert all("kv_old" in print_op(op) for op in harmless)
    for op, mutant in removals(program):
        assert op not in harmless or survives(mutant, 20)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_accepted_removals_survive_a_thousand_runs(policy):
    assert survives(three_layers(policy), 1000)
    assert all(survives(mutant, 1000) for mutant in accepted(policy))
