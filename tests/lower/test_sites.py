"""A collective and a wire for each place where devices sum, by the plan or by the step, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from schedc.cli.options import parse_sites
from schedc.compiler.pipeline import limits_of, with_addresses
from schedc.errors import UserError
from schedc.ir.program import Compute, Program, walk
from schedc.ir.verify import verify
from schedc.lower.collectives.choose import communication_for
from schedc.lower.collectives.communication import FUSED
from schedc.lower.graph import StepShape, shape_from_dict, shape_to_dict
from schedc.lower.step import StepLowering
from schedc.schedule.build import problem_of, program_of
from schedc.schedule.plan_faults import check_plan
from schedc.schedule.policies.ring import ring
from schedc.spec.load import load_spec
from schedc.spec.model import ModelSpec
from schedc.target.target import Target, parse_target
from tests.reference.small_specs import small_spec

MINI = load_spec("kimi-k3-mini")
FOUR = parse_target("tpu7x:2x2x1", 4)


def lowering(spec: ModelSpec = MINI, target: Target = FOUR, rows: int = 1, **asked: Mapping[str, str]) -> StepLowering:
    devices = target.devices_used
    talk = communication_for(spec.hidden, rows, target, "two_phase" if devices > 1 else None, **asked)
    return StepLowering(spec, StepShape(rows, 64, devices=devices, communication=talk))


def planned(step: StepLowering, **changed: Mapping[str, str]) -> Program:
    problem = problem_of(step, FOUR)
    plan = replace(ring(problem, slot_mib=0.25), **changed)
    assert check_plan(problem, plan) == []
    return program_of(step, plan, FOUR)


def attributes(program: Program, kind: str, name: str) -> set[object]:
    return {dict(op.attributes).get(name) for op in walk(program.body) if isinstance(op, Compute) and op.kind == kind}


def buffers(program: Program) -> set[str]:
    return {buffer.name for buffer in program.buffers if buffer.pool.startswith("exchange")}


def test_a_plan_may_name_an_algorithm_and_a_wire_for_each_site() -> None:
    step = lowering()
    assert set(problem_of(step, FOUR).sites) == {"mixer", "feed_forward", "latent"}
    before = planned(step)
    after = planned(step, collectives={"mixer": "ring"}, wires={"mixer": "bf16"})
    assert not any("gathered" in name for name in buffers(before))
    assert any("gathered" in name for name in buffers(after)), "those of a ring"
    assert attributes(before, "pack_wire", "wire") | attributes(before, "pack_parts", "wire") == {"f32"}
    assert "bf16" in attributes(after, "pack_wire", "wire"), "the mixer's ring"
    assert attributes(after, "pack_parts", "wire") == {"f32"}, "all others"
    verdict = verify(with_addresses(after, FOUR), limits_of(FOUR))
    assert verdict.proven, str(verdict)


def test_latents_are_fused_where_that_saves_a_hop_and_apart_if_a_plan_says_so() -> None:
    fused = planned(lowering())
    assert attributes(fused, "sum_scaled", "wire") == {"f32"}
    apart = planned(lowering(), collectives={"latent": "two_phase"})
    assert attributes(apart, "sum_scaled", "wire") == set()
    one_hop = planned(lowering().at_sites({"latent": "one_shot"}, {}))
    assert attributes(one_hop, "sum_scaled", "wire") == set()
    again = planned(
        lowering(collectives={"latent": "one_shot"}), collectives={"latent": FUSED}, wires={"latent": "bf16"}
    )
    assert attributes(again, "sum_wire", "wire") == {"f32", "bf16"}


def test_by_default_two_hops_are_not_made_three() -> None:
    quick = communication_for(MINI.hidden, 1, FOUR)
    assert quick.all_reduce == "one_shot"
    step = StepLowering(MINI, StepShape(1, 64, devices=4, communication=quick))
    assert attributes(planned(step), "sum_scaled", "wire") == set()


@pytest.mark.parametrize(
    ("collectives", "wires", "said"),
    [
        ({"mixer": "ringg"}, {}, r"collective of mixer is ringg; it must be one of one_shot, two_phase, hierarch"),
        ({"mixer": FUSED}, {}, r"collective of mixer is fused; it must be one of one_shot, two_phase"),
        (
            {"head": "ring"},
            {},
            "collective names head, where nothing is summed; there are mixer, feed_forward, latent",
        ),
        ({}, {"latent": "int8"}, r"wire of latent is int8; it must be one of bf16, f32"),
        ({}, {"embedding": "f32"}, "wire names embedding, where nothing is summed"),
    ],
)
def test_a_plan_that_cannot_be_says_what_can(collectives: dict[str, str], wires: dict[str, str], said: str) -> None:
    problem = problem_of(lowering(), FOUR)
    plan = replace(ring(problem), collectives=collectives, wires=wires)
    (fault,) = check_plan(problem, plan)
    assert re.search(said, fault)


def test_a_step_that_has_no_such_site_is_refused() -> None:
    spec = small_spec()
    with pytest.raises(UserError, match="collective names latent, where nothing is summed; there are mixer, feed_for"):
        lowering(spec, collectives={"latent": "ring"})
    with pytest.raises(UserError, match="collective names mixer, where nothing is summed; this step sums nothing"):
        lowering(spec, parse_target("tpu7x")).at_sites({"mixer": "ring"}, {})
    with pytest.raises(UserError, match="no collective algorithm is called 'rng'"):
        lowering(collectives={"mixer": "rng"})


def test_a_norm_with_a_mean_is_no_factor() -> None:
    data = MINI.model_dump(mode="json")
    for run in data["layers"]:
        for block in run["pattern"]:
            if block["feed_forward"]["kind"] == "moe":
                block["feed_forward"]["latent"]["norm_out"] = {"kind": "layer", "eps": 1e-6}
    spec = ModelSpec.model_validate(data)
    assert FUSED not in lowering(spec).sum_sites()["latent"]
    with pytest.raises(UserError, match=r"collective of latent is fused; it must be one of one_shot"):
        lowering(spec, collectives={"latent": FUSED})


def test_sites_survive_the_way_to_another_process() -> None:
    shape = lowering(collectives={"latent": FUSED}, wires={"mixer": "bf16"}).shape
    assert shape_from_dict(json.loads(json.dumps(shape_to_dict(shape)))) == shape


@pytest.mark.parametrize(
    ("text", "default", "sites"),
    [
        (None, None, {}),
        ("ring", "ring", {}),
        ("mixer=ring, latent=fused", None, {"mixer": "ring", "latent": "fused"}),
        ("two_phase,mixer=ring", "two_phase", {"mixer": "ring"}),
    ],
)
def test_the_option_gives_one_for_all_or_some_by_site(text: str | None, default: str | None, sites: dict) -> None:
    assert parse_sites("--collective", text) == (default, sites)


@pytest.mark.parametrize("text", ["", "mixer=", "=ring", "ring,two_phase", "mixer=a,mixer=b"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="must be one name, or names by site, as in mixer=NAME,latent=NAME"):
        parse_sites("--collective", text)


def test_sums_of_several_algorithms_share_no_buffer_or_semaphore() -> None:
    """Where some algorithms have stages and others have none."""
    for mixer, feed_forward in (("hierarchical", "one_shot"), ("one_shot", "two_phase"), ("two_phase", "hierarchical")):
        made = planned(lowering(), collectives={"mixer": mixer, "feed_forward": feed_forward})
        names = [declared.name for declared in (*made.buffers, *made.semaphores)]
        assert sorted(names) == sorted(set(names))
        assert verify(with_addresses(made, FOUR), limits_of(FOUR)).proven
