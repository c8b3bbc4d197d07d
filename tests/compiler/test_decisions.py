"""The log of decisions says what was chosen and what else there was, with the costs that the choosers go by."""

import json
from dataclasses import replace

import pytest

from schedc.compiler.decisions.decision import Decision, to_markdown
from schedc.compiler.decisions.log import decisions_of, with_predictions
from schedc.compiler.pipeline import Request, build
from schedc.compiler.placement import least_bytes
from schedc.compiler.pricing import schedule
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.ir.program import ROW_BYTES
from schedc.lower.collectives.choose import communication_for
from schedc.lower.graph import StepShape
from schedc.spec.load import load_spec
from schedc.target.target import parse_target


def request(model: str, devices: int = 1, rows: int = 1) -> Request:
    spec, target = load_spec(model), parse_target("tpu7x:2x2x1", devices)
    talk = communication_for(spec.hidden, rows, target)
    return Request(spec, target, StepShape(rows, 1024, devices=devices, communication=talk))


def log_of(asked: Request) -> tuple[Decision, ...]:
    return decisions_of(asked, *build(asked))


@pytest.fixture(scope="module")
def experts() -> tuple[Decision, ...]:
    return log_of(request("gpt-oss-20b", 8))


def of(log: tuple[Decision, ...], kind: str, about: str = "") -> Decision:
    return next(one for one in log if one.kind == kind and about in one.about)


def test_the_fewest_cycles_are_chosen_among_the_forms(experts: tuple[Decision, ...]):
    product = of(experts, "product", "mxfp4 weights with bf16 rows")
    costs = [other.cost for other in product.alternatives if other.cost is not None]
    assert product.chosen == "block_diagonal" and product.cost is not None and product.cost < min(costs)
    assert {other.name for other in product.alternatives} >= {"dequantised", "recoded"}
    alone = of(experts, "product", "bf16 weights")
    assert alone.alternatives == () and "no other form" in alone.why


def test_the_quickest_collective_is_chosen_and_the_others_have_their_microseconds(experts: tuple[Decision, ...]):
    one = of(experts, "collective", "sum of f32[1, 2880] over 8 devices")
    costs = {other.name: other.cost for other in one.alternatives}
    assert one.chosen == "one_shot" and set(costs) >= {"two_phase", "hierarchical", "ring"}
    assert all(cost is None or cost > one.cost for cost in costs.values())
    wire = of(experts, "collective", "wire")
    assert (wire.chosen, wire.alternatives[0].name) == ("f32", "bf16") and wire.alternatives[0].cost < wire.cost


def test_placement_is_told_in_bytes_a_device_of_every_other_rule(experts: tuple[Decision, ...]):
    asked = request("gpt-oss-20b", 8)
    here = least_bytes(asked.spec, asked.shape)
    devices = of(experts, "devices")
    assert devices.cost == here
    assert {other.name: other.cost for other in devices.alternatives}["2 devices"] == least_bytes(
        asked.spec, replace(asked.shape, devices=2)
    )
    attention = of(experts, "placement", "attention")
    assert attention.cost == here and attention.alternatives[0].name == "replicated"
    assert attention.alternatives[0].cost > here
    assert any("none of the 8 kv heads" in other.note for other in of(experts, "placement", "kv").alternatives)


def test_tiles_rings_and_the_caches_tile_are_those_of_the_program():
    asked = request("smollm2-135m")
    made, program = build(asked)
    log = decisions_of(asked, made, program)
    ring = of(log, "ring", "weights")
    slot = program.buffer("weights_slot")
    assert ring.cost == slot.rows * slot.slots * ROW_BYTES and ring.chosen.startswith(f"{slot.slots} slots")
    assert of(log, "kv tile").chosen == f"{made.plan.kv_tokens} tokens"
    tile = of(log, "tile", "w_up")
    assert tile.chosen.endswith(f"tiles of {made.plan.tile_units['w_up']} of its 24 panels")
    within = [other for other in tile.alternatives if "more than a slot" not in other.note]
    assert within and all(other.cost >= tile.cost for other in within), "of what fits the slots the least is lost"
    for pool in program.pools:
        found = of(log, "allocation", f"pool {pool.name}")
        bound, apart = found.alternatives
        assert found.cost == pool.rows * ROW_BYTES and bound.cost <= found.cost <= apart.cost


def test_other_policies_are_predicted_on_request_alone():
    asked = request("smollm2-135m")
    made, program = build(asked)
    log = decisions_of(asked, made, program)
    assert of(log, "policy").cost is None and {o.note for o in of(log, "policy").alternatives} == {"not predicted"}
    predicted = of(with_predictions(asked, program, log), "policy")
    machine = Machine.of(asked.target)
    assert predicted.cost == round(simulate(program, machine).step_ns / 1e3, 3)
    late = schedule(asked.spec, asked.shape, asked.target, "just_in_time", {}).program
    costs = {other.name: other.cost for other in predicted.alternatives}
    assert costs["just_in_time"] == round(simulate(late, machine).step_ns / 1e3, 3) > predicted.cost


def test_the_same_input_gives_the_same_log_and_it_reads_as_text():
    first, again = (log_of(request("kimi-k3-mini", 8)) for _ in range(2))
    assert json.dumps([one.to_dict() for one in first]) == json.dumps([one.to_dict() for one in again])
    text = to_markdown("Decisions of k3", first)
    assert text.startswith("# Decisions of k3\n\n## devices\n\n**devices of tpu7x:2x2x1")
    assert all(one.about in text and one.chosen in text for one in first)
    assert text.count("\n## ") == len({one.kind for one in first})
