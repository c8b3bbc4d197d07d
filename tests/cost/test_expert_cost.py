"""How many experts a step is predicted to fetch."""

import pytest

from schedc.cost.inputs import default_inputs
from schedc.cost.machine import Machine
from schedc.cost.routing import DEFAULT_LOAD, distinct_experts
from schedc.cost.simulate import simulate
from schedc.ir.program import ROW_BYTES
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.target.target import parse_target
from tests.reference.moe_specs import small_moe

TARGET = parse_target("tpu7x")


def test_a_row_alone_fetches_its_own_and_many_rows_share() -> None:
    """128 · (1 - (120/128)^8) = 51.6 of 128; half of that on a device that holds half."""

    def mean(experts: int, top_k: int, rows: int, members: int) -> float:
        return distinct_experts(DEFAULT_LOAD, experts, top_k, rows, members).mean

    assert mean(128, 8, 1, members=128) == pytest.approx(8)
    assert mean(128, 8, 8, members=128) == pytest.approx(51.6, abs=0.05)
    assert mean(128, 8, 8, members=64) == pytest.approx(25.8, abs=0.05)
    assert mean(8, 8, 3, members=8) == 8
    assert mean(128, 4, 1, members=16) == 0.5


@pytest.mark.parametrize(("rows", "count"), [(1, 2), (4, 4.815)])
def test_the_weights_of_so_many_experts_are_read_in_every_layer(rows: int, count: float) -> None:
    spec = small_moe()
    program = schedule(spec, StepShape(rows, 50), TARGET).program
    assert default_inputs(program)["expert_count"] == [count]
    timeline = simulate(program, Machine.of(TARGET))
    read = timeline.read["expert_w_up"] + timeline.read["expert_w_down"]
    of_one = sum(program.array(f"expert_w_{name}").rows for name in ("up", "down")) // (2 * 6)
    assert read == int(2 * count) * of_one * ROW_BYTES  # two layers: of 4.815 experts, 4 and then 5
    alone = simulate(program, Machine.of(TARGET), {"expert_count": [0]})
    assert "expert_w_up" not in alone.read
    assert alone.step_ns < timeline.step_ns
