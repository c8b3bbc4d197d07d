"""What is proposed when a schedule does not fit: single changes first, each as small as it can be, each tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schedc.compiler.fit import Trial, remedies
from schedc.ir.allocate import fits
from schedc.lower.graph import StepShape
from schedc.schedule.build import capacity_rows, schedule
from schedc.spec.load import load_spec
from schedc.target.target import Target, parse_target

SPEC = load_spec("smollm2-135m")


def target(mib: float) -> Target:
    """A tpu7x with little VMEM."""
    whole = parse_target("tpu7x")
    capability = whole.chip.capability.model_copy(update={"vmem_usable_bytes": int(mib * 2**20)})
    return replace(whole, chip=whole.chip.model_copy(update={"capability": capability}))


def asked(mib: float, policy: str = "ring", rows: int = 1, **settings: float) -> list[str]:
    return remedies(SPEC, target(mib), Trial("", StepShape(rows, 4096), policy, settings))


def fit(mib: float, policy: str, rows: int = 1, **settings: float) -> bool:
    made = schedule(SPEC, StepShape(rows, 4096), target(mib), policy, settings)
    return fits(made.program, capacity_rows(target(mib)))


def test_every_setting_is_reduced_by_itself():
    assert asked(12, depth=8) == [
        "--set depth=4",
        "--set slot_mib=1",
        "--policy double_buffer without --set depth",
        "--policy just_in_time without --set depth",
    ]
    assert fit(12, "ring", depth=4) and not fit(12, "ring", depth=5)
    assert fit(12, "ring", depth=8, slot_mib=1.0) and not fit(12, "ring", depth=8, slot_mib=1.5)


def test_a_depth_that_the_policy_chose_is_reduced_from_what_it_chose():
    assert asked(5) == ["--set depth=1", "--set slot_mib=1.5", "--policy just_in_time"]


def test_settings_are_reduced_together_only_if_none_will_do_alone():
    found = asked(2, depth=8, slot_mib=4.0)
    assert len(found) == 1
    assert found[0].count("--set") == 2


def test_fewer_rows_are_a_change_of_their_own():
    tight = next(mib for mib in (4, 3.5, 3, 2.5, 2) if not fit(mib, "just_in_time", rows=16, slot_mib=0.25))
    assert any(command.startswith("--rows") for command in asked(tight, "just_in_time", rows=16, slot_mib=0.25))


def test_nothing_is_proposed_where_nothing_fits():
    assert asked(0.3) == []


@pytest.mark.parametrize("policy", ["ring", "double_buffer", "just_in_time"])
def test_a_policy_is_not_proposed_in_place_of_itself(policy):
    assert not any(f"--policy {policy}" in command for command in asked(3, policy, slot_mib=4.0))
