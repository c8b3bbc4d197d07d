"""What every policy decides is built, fits VMEM and is proven: models with heads, latents, states and experts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from schedc.compiler.pipeline import Request, build, limits_of
from schedc.compiler.pricing import pricing_on
from schedc.ir.verify import verify
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.lower.step import StepLowering
from schedc.schedule.build import problem_of
from schedc.schedule.plan import Plan, Problem
from schedc.schedule.registry import POLICIES, run_policy
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import parse_target

FAST = [("smollm2-135m", 1), ("llama-3.1-8b", 1), ("kimi-k3-mini", 4)]
SLOW = [("kimi-k3-mini", 1), ("kimi-k3-mini", 2), ("gpt-oss-20b", 8), ("qwen3.5-27b", 1)]
OFTEN_PROVEN = ("ring", "double_buffer", "just_in_time")
"""In tests/ir."""


def few_layers(spec: ModelSpec) -> ModelSpec:
    """At full width, three trips of every run: a first, a steady and a last one."""
    runs = tuple(run.model_copy(update={"repeat": min(run.repeat, 3)}) for run in spec.layers)
    return spec.model_copy(update={"layers": runs})


def request(model: str, devices: int, policy: str, **settings: float) -> Request:
    spec, target = few_layers(load_spec(model)), parse_target("tpu7x:2x2x1", devices)
    talk = communication_for(spec.hidden, 1, target)
    return Request(spec, target, StepShape(1, 2048, devices=devices, communication=talk), policy, settings)


@cache
def problem(model: str, devices: int) -> Problem:
    asked = request(model, devices, "ring")
    return problem_of(StepLowering(asked.spec, asked.shape), asked.target, pricing_on(asked.target))


def is_proven(asked: Request) -> bool:
    verdict = verify(build(asked)[1], limits_of(asked.target))
    return verdict.proven


@pytest.mark.parametrize(
    ("model", "devices"),
    [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy not in OFTEN_PROVEN])
def test_every_policy_is_proven(policy: str, model: str, devices: int) -> None:
    assert is_proven(request(model, devices, policy))


@pytest.mark.parametrize(
    ("model", "devices", "policy", "settings"),
    [
        ("kimi-k3-mini", 4, "defer_behind_experts", {"phases": 2, "slot_mib": 0.5}),
        ("kimi-k3-mini", 4, "next_layer_attention", {"depth": 2, "slot_mib": 0.25}),
        ("smollm2-135m", 1, "ring", {"kv_slots": 3}),
        ("kimi-k3-mini", 4, "ring", {"kv_slots": 4}),
        ("smollm2-135m", 1, "xla_ratio", {"preferred": 4.0, "slot_mib": 0.25}),
        ("smollm2-135m", 1, "earliest_fit", {"deepest": 3, "slot_mib": 1.0}),
    ],
)
def test_settings_of_policies_are_proven(model: str, devices: int, policy: str, settings: dict[str, float]) -> None:
    assert is_proven(request(model, devices, policy, **settings))


def plan_of(policy: str, model: str = "kimi-k3-mini", devices: int = 4, **settings: float) -> Plan:
    return run_policy(policy, problem(model, devices), dict(settings))


def test_refills_wait_for_the_first_experts() -> None:
    plan = plan_of("defer_behind_experts", phases=1)
    assert plan.deferred["shared_up_1_0"] == plan.issue["experts_1_0"]
    more = plan_of("defer_behind_experts", phases=9).deferred
    assert plan.deferred.items() < more.items()
    assert not [phase for phase in more if phase.startswith("o_")]  # Of the mixer.


def test_attention_of_the_next_layer_arrives_behind_the_experts() -> None:
    plan = plan_of("next_layer_attention")
    attention = plan.rings[0]
    halves = {stream.half for stream in problem("kimi-k3-mini", 4).streams if stream.name in attention.streams}
    assert (attention.name, halves) == ("attention", {"mixer"})
    assert plan.deferred["o_1_0"] == "expert_latent_total_1_0"
    assert plan_of("next_layer_attention", "smollm2-135m", 1).deferred["o"] == "up"


def test_a_ratio_of_overlap_is_kept_by_slots() -> None:
    """Twice the ratio needs more tiles ahead."""
    shallow, deep = (plan_of("xla_ratio", "smollm2-135m", 1, preferred=p).rings[0].ahead for p in (1.0, 3.0))
    assert shallow < deep


def test_a_ratio_that_vmem_does_not_hold_falls_back_to_fewer_slots() -> None:
    asked = problem("llama-3.1-8b", 1)
    plan = run_policy("xla_ratio", asked, {"preferred": 40.0, "least": 39.0})
    assert plan.rings[0].slots == 2 and asked.fits(plan)


def test_listed_phases_stand_between_an_exchange_and_its_wait() -> None:
    """On a device of several the layers' order changes, and is predicted to be no slower."""
    asked, plan = problem("kimi-k3-mini", 4), plan_of("earliest_fit")
    assert asked.evaluate is not None
    assert asked.evaluate(plan) <= asked.evaluate(replace(plan, order={}, issue=plan_of("ring").issue))
    order = plan.order["layers_1"]
    crossed = [p for p in order if order.index("entry_send_1_0") < order.index(p) < order.index("entry_join_1_0")]
    lowered = next(s.order for s in asked.segments if s.name == "layers_1")
    before = lowered[lowered.index("entry_send_1_0") + 1 : lowered.index("entry_join_1_0")]
    assert set(before) < set(crossed)


def test_more_cache_tiles_under_way_hide_their_latency() -> None:
    """At 2,048 tokens there are few older tiles; each comes 0.7 µs after it was asked for."""
    asked = problem("llama-3.1-8b", 1)
    assert asked.evaluate is not None
    two, three = (run_policy("ring", asked, {"kv_slots": slots}) for slots in (2, 3))
    assert asked.evaluate(three) < asked.evaluate(two)
    assert (
        asked.kv_rows(512, 3) - asked.kv_rows(512, 2) == 512 * (8 * 2 * 128 * 2) // 512
    )  # Tokens of k and v in bf16, in rows.


def test_a_policy_is_told_what_phases_take_and_how_long_a_step_of_its_plan_is() -> None:
    asked = problem("smollm2-135m", 1)
    assert asked.durations["up"] > asked.durations["o"] > asked.durations["mixer_residual"] > 0
    assert asked.stalls["qkv"] > 0
    small, large = (asked.transfer.ns(rows) for rows in (100, 200))
    assert 0 < small < large < 2 * small
    assert asked.evaluate is not None
    fast, slow = (asked.evaluate(plan_of(policy, "smollm2-135m", 1)) for policy in ("ring", "just_in_time"))
    assert fast < slow / 2


def test_a_plan_that_does_not_fit_takes_for_ever() -> None:
    asked = problem("llama-3.1-8b", 1)
    assert asked.evaluate is not None
    assert asked.evaluate(run_policy("ring", asked, {"depth": 64})) == float("inf")
