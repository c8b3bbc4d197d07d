"""The freedom of a plan: the order of phases, deferred refills, where a ring begins. What is legal is proven."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import networkx as nx
import pytest

from schedc.compiler.pipeline import limits_of
from schedc.errors import UserError
from schedc.ir.allocate import allocate
from schedc.ir.program import Phase, Program, Start, walk
from schedc.ir.verify import verify
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from schedc.schedule.build import capacity_rows, problem_of, program_of
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.plan_faults import check_plan
from schedc.schedule.policies.ring import ring
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.schedule.any_plan import any_plan

CASES = {"smollm2-135m": ("tpu7x", 1), "kimi-k3-mini": ("tpu7x:2x2x1", 4), "kimi-k3": ("tpu7x:2x2x4", 32)}


@cache
def lowered(model: str) -> StepLowering:
    spec, target = load_spec(model), parse_target(*CASES[model])
    devices = CASES[model][1]
    talk = communication_for(spec.hidden, 1, target)
    return StepLowering(spec, StepShape(1, 256, devices=devices, communication=talk))


@cache
def problem(model: str) -> Problem:
    return problem_of(lowered(model), parse_target(*CASES[model]))


def program(model: str, plan: Plan) -> Program:
    """Raises what keeps it from being built."""
    target = parse_target(*CASES[model])
    assert check_plan(problem(model), plan) == []
    return allocate(program_of(lowered(model), plan, target), capacity_rows(target))


def is_proven(model: str, plan: Plan) -> bool:
    return verify(program(model, plan), limits_of(parse_target(*CASES[model]))).proven


@pytest.mark.parametrize("model", ["smollm2-135m", "kimi-k3-mini"])
@pytest.mark.parametrize("seed", range(3))
def test_any_order_that_the_dependences_allow_is_proven(model: str, seed: int) -> None:
    plan = any_plan(problem(model), seed=seed)
    assert model == "smollm2-135m" or any(plan.order[s.name] != s.order for s in problem(model).segments)
    assert plan.deferred
    assert is_proven(model, plan)


def test_phases_of_a_program_stand_in_the_order_of_the_plan() -> None:
    plan = any_plan(problem("kimi-k3-mini"), seed=1)
    found = [op.name for op in walk(program("kimi-k3-mini", plan).body) if isinstance(op, Phase)]
    wanted = [name for order in plan.order.values() for name in order if name in found]
    assert [name for name in found if name in wanted and not name.startswith("experts_1")] == [
        name for name in wanted if not name.startswith("experts_1")
    ]


@pytest.mark.parametrize(
    ("moved", "behind"),
    [
        ("shared_up_1_0", "expert_latent_send_1_0"),
        ("shared_down_1_0", "expert_latent_send_1_0"),
        ("shared_up_1_0", "route_1_0"),
    ],
)
def test_work_of_kimi_k3_that_its_exchanges_may_hide(moved: str, behind: str) -> None:
    """The shared expert across the exchange of the experts' sums, or behind the router."""
    asked = problem("kimi-k3")
    segment = next(s for s in asked.segments if moved in s.order)
    assert not nx.has_path(asked.depends[segment.name], moved, behind)


def swapped(first: str, second: str) -> Plan:
    """The ring's plan for SmolLM2 with two phases of its layers in each other's place."""
    asked = problem("smollm2-135m")
    order = list(asked.segments[1].order)
    a, b = order.index(first), order.index(second)
    order[a], order[b] = order[b], order[a]
    return replace(ring(asked), order={"layers_0": tuple(order)})


def test_an_order_against_the_data_names_both_phases_and_the_buffer() -> None:
    faults = check_plan(problem("smollm2-135m"), swapped("up", "activation"))
    assert "order[layers_0] has activation before up, which must come first: both use mlp_hidden" in faults


def test_an_order_that_is_no_permutation_says_what_is_missing_and_what_is_too_much() -> None:
    asked = problem("smollm2-135m")
    order = ("tea", *asked.segments[1].order[:-1])
    plan = replace(ring(asked), order={"layers_0": order, "layers_7": ()})
    assert check_plan(asked, plan) == [
        "order[layers_0] lacks settle; it must have every phase of the segment once",
        "order[layers_0] has too many of tea; it must have every phase of the segment once",
        "order names layers_7, which is not a segment; there are begin, layers_0, finish",
    ]


def test_a_transfer_is_not_issued_behind_its_wait_in_another_order() -> None:
    """`settle` waits for what `attend` has written; the caches' tiles come before `attend`."""
    asked = problem("smollm2-135m")
    order = tuple(phase for phase in asked.segments[1].order if phase != "settle")
    at = order.index("attend") + 1
    plan = replace(ring(asked), order={"layers_0": (*order[:at], "settle", *order[at:])})
    assert check_plan(asked, plan) == []
    late = replace(plan, issue=plan.issue | {"kv_older": "join"})
    assert check_plan(asked, late) == ["issue[kv_older] is join; in this order it must be from mixer_norm to attend"]


def starts(program: Program) -> list[tuple[str, str]]:
    """(phase, array) of every start of a weight."""
    found = []
    for phase in walk(program.body):
        if isinstance(phase, Phase):
            found += [(phase.name, op.source.storage) for op in walk(phase.body) if isinstance(op, Start)]
    return found


def test_a_deferred_refill_is_started_at_the_later_phase_and_nowhere_else() -> None:
    asked = problem("smollm2-135m")
    deferred = {"up": "feed_forward_residual", "down": "feed_forward_residual"}
    plan = replace(ring(asked, depth=16, slot_mib=1), deferred=deferred)
    assert is_proven("smollm2-135m", plan)
    now, then = (starts(program("smollm2-135m", p)) for p in (replace(plan, deferred={}), plan))
    assert sorted(array for _, array in now) == sorted(array for _, array in then)
    moved = {"up", "down"}
    assert [start for start in now if start[0] not in {*moved, "feed_forward_residual"}] == [
        start for start in then if start[0] != "feed_forward_residual"
    ]
    assert any(phase in moved for phase, _ in now) and not any(phase in moved for phase, _ in then)


@pytest.mark.parametrize(
    ("deferred", "fault"),
    [
        (
            {"qkv": "up"},
            "deferred[qkv] is up, and the refills of o, which come behind in ring weights, would be started first; "
            "defer them to up too",
        ),
        ({"up": "qkv"}, "deferred[up] is qkv; it must be a later phase of segment layers_0"),
        ({"up": "head"}, "deferred[up] is head; it must be a later phase of segment layers_0"),
        ({"attend": "up"}, "deferred names attend, which is no phase that streams"),
        ({"mixer_norm": "up"}, "deferred names mixer_norm, but vectors is read by a later phase"),
        (
            {"qkv": "settle", "o": "settle", "up": "settle", "down": "settle"},
            "ring weights does not start w_qkv in qkv before it is waited for",
        ),
    ],
)
def test_refills_are_deferred_in_the_order_of_their_ring_and_in_time(deferred: dict[str, str], fault: str) -> None:
    asked = problem("smollm2-135m")
    plan = replace(ring(asked, depth=2, slot_mib=0.25), deferred=deferred)
    assert any(found.startswith(fault) for found in check_plan(asked, plan)), check_plan(asked, plan)


def test_a_ring_begins_where_it_is_told() -> None:
    asked = problem("smollm2-135m")
    plan = ring(asked, depth=4)
    first, small = plan.rings
    rings = (
        replace(first, streams=tuple(s for s in first.streams if s != "w_head"), begin="embed"),
        replace(first, name="head", streams=("w_head",), slots=2, ahead=2, begin="down"),
        small,
    )
    apart = replace(plan, rings=rings)
    assert is_proven("smollm2-135m", apart)
    found = starts(program("smollm2-135m", apart))
    assert ("embed", "w_qkv") in found and ("down", "w_head") in found
    assert not [array for phase, array in found if phase == "prologue" and array in ("w_qkv", "w_head")]
    late = replace(apart, rings=(replace(rings[0], begin="up"), *rings[1:]))
    assert check_plan(asked, late) == ["ring weights begins at up, and w_qkv in qkv uses it before"]
    nowhere = replace(apart, rings=(replace(rings[0], begin="tea"), *rings[1:]))
    assert check_plan(asked, nowhere) == ["ring weights begins at tea, which is not a phase"]


def test_an_order_that_needs_more_vectors_at_once_than_there_are_slots_is_refused() -> None:
    plan = any_plan(problem("kimi-k3-mini"), seed=0)
    rings = tuple(replace(r, slots=1, ahead=1) if r.name == "small" else r for r in plan.rings)
    faults = check_plan(problem("kimi-k3-mini"), replace(plan, rings=rings))
    assert [fault.partition(" before it")[0].partition(" vectors")[0] for fault in faults] == [
        "ring small does not start"
    ]


def test_an_order_holds_for_the_phases_that_whole_sums_add() -> None:
    """A sum that is sent whole has a phase for that, which is in no order: it stays behind the one it follows."""
    plan = replace(any_plan(problem("kimi-k3-mini"), seed=0), sums="whole")
    assert is_proven("kimi-k3-mini", plan)
    found = [op.name for op in walk(program("kimi-k3-mini", plan).body) if isinstance(op, Phase)]
    assert "mixer_send_0_0" not in plan.order["layers_0"]
    assert found[found.index("mixer_send_0_0") - 1] == "o_0_0"


def test_an_order_is_of_the_phases_that_the_collectives_of_the_plan_have() -> None:
    """With the latents' sums fused there is no way back to add: what the shared experts give is sent by itself."""
    asked = problem("kimi-k3-mini")
    assert "fused" in asked.sites["latent"]
    for algorithm in ("fused", "two_phase"):
        plan = replace(ring(asked), collectives={"latent": algorithm})
        there = asked.at(plan)
        segment = there.segments[2]
        assert ("expert_latent_add_1_0" in segment.order) == (algorithm != "fused")
        assert check_plan(asked, replace(plan, order={segment.name: segment.order})) == []
        other = next(a for a in ("fused", "two_phase") if a != algorithm)
        wrong = replace(plan, collectives={"latent": other}, order={segment.name: segment.order})
        assert check_plan(asked, wrong)[0].startswith("order[layers_1] lacks ")


def test_an_order_that_is_illegal_only_with_whole_sums_is_refused() -> None:
    """`o` sends its tiles as it makes them; with the whole sent behind it, `mixer_send` would follow `mixer_sum`."""
    target, asked = parse_target(*CASES["kimi-k3-mini"]), problem("kimi-k3-mini")
    order = list(asked.segments[1].order)
    a, b = order.index("o_0_0"), order.index("mixer_sum_0_0")
    order[a], order[b] = order[b], order[a]
    plan = replace(ring(asked), sums="whole", order={"layers_0": tuple(order)})
    with pytest.raises(UserError, match=r"(?s)^the plan cannot be built:\n.*mixer_sum_0_0 before mixer_send_0_0"):
        program_of(lowered("kimi-k3-mini"), plan, target)
