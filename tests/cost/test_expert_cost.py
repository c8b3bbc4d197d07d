"""How many experts a step is predicted to fetch."""

import pytest

from schedc.cost.inputs import default_inputs, expected_experts
from schedc.cost.machine import Machine
from schedc.cost.simulate import simulate
from schedc.ir.program import ROW_BYTES
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.target.target import parse_target
from tests.reference.moe_specs import small_moe

TARGET = parse_target("tpu7x")


def test_a_row_alone_fetches_its_own_and_many_rows_share() -> None:
    """128 · (1 - (120/128)^8) = 51.6 of 128; half of that on a device that holds half."""
    assert expected_experts(members=128, experts=128, top_k=8, rows=1) == 8
    assert expected_experts(members=128, experts=128, top_k=8, rows=8) == 52
    assert expected_experts(members=64, experts=128, top_k=8, rows=8) == 26
    assert expected_experts(members=8, experts=8, top_k=8, rows=3) == 8
    assert expected_experts(members=16, experts=128, top_k=4, rows=1) == 1


@pytest.mark.parametrize(("rows", "count"), [(1, 2), (4, 5)])
def test_the_weights_of_so_many_experts_are_read_in_every_layer(rows: int, count: int) -> None:
    spec = small_moe()
    program = schedule(spec, StepShape(rows, 50), TARGET).program
    assert default_inputs(program)["expert_count"] == [count]
    timeline = simulate(program, Machine.of(TARGET))
    read = timeline.read["expert_w_up"] + timeline.read["expert_w_down"]
    of_one = sum(program.array(f"expert_w_{name}").rows for name in ("up", "down")) // (2 * 6)
    assert read == 2 * count * of_one * ROW_BYTES
    alone = simulate(program, Machine.of(TARGET), {"expert_count": [0]})
    assert "expert_w_up" not in alone.read
    assert alone.step_ns < timeline.step_ns
