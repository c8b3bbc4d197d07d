"""What a policy may answer, and what is said when it answers something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schedc.errors import UserError
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from schedc.schedule.build import problem_of
from schedc.schedule.plan import Plan, Problem, Ring
from schedc.schedule.registry import POLICIES, find_policy, run_policy
from schedc.schedule.tiles import cut
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

OWN = '''
from schedc.schedule.plan import Plan, Ring

def mine(problem, *, slots: int = 3):
    """Three slots."""
    matrices, vectors = (tuple(s.name for s in some) for some in (problem.matrices(), problem.vectors()))
    units = {stream.name: 1 if stream.name in matrices else stream.units for stream in problem.streams}
    return Plan((Ring("all", matrices, slots, slots), Ring("few", vectors, 2, 2)), units, problem.kv_tokens[-1])

def broken(problem):
    return Plan((), {}, 7, {"tea": "time"})

def wrong(problem):
    return None

def raises(problem):
    return problem.streams[99]
'''


@pytest.fixture(scope="module")
def problem() -> Problem:
    return problem_of(StepLowering(load_spec("smollm2-135m"), StepShape(1, 256)), parse_target("tpu7x"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_a_plan_that_can_be_built(policy: str, problem: Problem) -> None:
    plan = run_policy(policy, problem, {})
    assert {name for ring in plan.rings for name in ring.streams} == {stream.name for stream in problem.streams}


def test_a_policy_of_the_users_own_file_takes_its_own_settings(own: Path, problem: Problem) -> None:
    assert run_policy(f"{own}:mine", problem, {"slots": 2}).rings[0].slots == 2


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rnig", {}, "no policy is called 'rnig'; did you mean ring? Your own: ./file.py:function"),
        (
            "ring",
            {"depht": 3},
            "policy ring has no setting depht; its settings: depth (default 0), slot_mib (default 2.0), "
            "expert_slots (default 0), expert_mib (default 4.0), experts_at_once (default 1), "
            "experts_by_number (default 0), whole_sums (default 0), kv_slots (default 2)",
        ),
        ("ring", {"slot_mib": 0}, "policy ring failed: ValueError: slot_mib is 0; it must be a number above 0"),
        ("ring", {"depth": 2.5}, "policy ring: depth=2.5 must be a whole number"),
        (
            "ring",
            {"depth": -1},
            "policy ring failed: ValueError: depth is -1; it must be 0 (as VMEM allows) or more",
        ),
        ("ring", {"expert_mib": 0}, "policy ring failed: ValueError: expert_mib is 0; it must be a number above 0"),
    ],
)
def test_a_wrong_name_or_setting_is_named(name: str, settings: dict, message: str, problem: Problem) -> None:
    with pytest.raises(UserError) as error:
        run_policy(name, problem, settings)
    assert str(error.value) == message


def test_an_absent_function_or_file_is_named_with_what_there_is(own: Path) -> None:
    with pytest.raises(UserError, match=r"has no function 'ours'; it has mine, broken, wrong, raises$"):
        find_policy(f"{own}:ours")
    with pytest.raises(UserError, match=r"^policy file no/such\.py does not exist$"):
        find_policy("no/such.py:f")


def test_all_faults_of_a_plan_are_named_at_once(own: Path, problem: Problem) -> None:
    with pytest.raises(UserError) as error:
        run_policy(f"{own}:broken", problem, {})
    lines = str(error.value).splitlines()
    assert lines[0] == f"policy {own}:broken gave a plan that cannot be built:"
    assert "  stream w_qkv is in 0 rings; it must be in one" in lines
    assert "  tile_units[w_qkv] is None; it must be in 1..8" in lines
    assert "  kv_tokens is 7; it must be one of 256, 128, 64, 32, 16" in lines
    assert "  issue names tea, which is not a prefetch; there are kv_newest, kv_older" in lines


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        (lambda plan: {"rings": (plan.rings[0], replace(plan.rings[1], name=plan.rings[0].name))},
         ["2 rings are called weights; names must differ"]),
        (lambda plan: {"rings": (*plan.rings, Ring("more", (), 2, 1))}, ["ring more has no streams; leave it out"]),
        (lambda plan: {"rings": (replace(plan.rings[0], name="a b"), *plan.rings[1:])},
         ["ring 'a b' needs a name of letters, digits and _"]),
        (lambda plan: {"tile_units": {**plan.tile_units, "w_tea": 1}},
         ["tile_units names w_tea, which is not a stream"]),
        (lambda plan: {"tile_units": {**plan.tile_units, "w_o": "2"}, "kv_slots": None},
         ["kv_slots: must be a whole number, not null", "tile_units.w_o: must be a whole number, not '2'"]),
        (lambda plan: {"order": None}, ["order: must be a mapping of keys, not null"]),
    ],
)  # fmt: skip
def test_what_no_program_can_be_made_of_is_refused_before_one_is(
    change: Callable[[Plan], dict[str, Any]], faults: list[str], problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = run_policy("ring", problem, {})
    changed = replace(plan, **change(plan))
    monkeypatch.setattr("schedc.schedule.registry.find_policy", lambda name: lambda problem: changed)
    with pytest.raises(UserError) as error:
        run_policy("mine", problem, {})
    assert str(error.value).splitlines()[1:] == [f"  {fault}" for fault in faults]


def test_a_policy_that_fails_or_returns_no_plan_is_no_traceback(own: Path, problem: Problem) -> None:
    with pytest.raises(UserError, match=r"raises failed at line \d+, `.*`: IndexError: tuple index out of range$"):
        run_policy(f"{own}:raises", problem, {})
    with pytest.raises(UserError, match=r"wrong returned NoneType, not a Plan$"):
        run_policy(f"{own}:wrong", problem, {})


def test_more_tiles_ahead_than_slots_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^ring r: 3 tiles ahead do not fit 2 slots$"):
        Ring("r", ("a",), slots=2, ahead=3)


def test_a_tile_wastes_as_little_as_it_can(problem: Problem) -> None:
    head = next(stream for stream in problem.streams if stream.name == "w_head")
    assert head.units % cut(head, 4096) == 0


def test_what_a_policy_refuses_itself_is_said_in_its_words(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    def picky(problem: Problem) -> Plan:
        raise UserError("one device is too few")

    monkeypatch.setattr("schedc.schedule.registry.find_policy", lambda name: picky)
    with pytest.raises(UserError, match=r"^policy picky: one device is too few$"):
        run_policy("picky", problem, {})
