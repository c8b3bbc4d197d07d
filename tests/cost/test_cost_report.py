"""What `schedc compile` prints about time."""

import json
from dataclasses import replace

import pytest
from machines import round_machine
from test_simulate import THREE_TRANSFERS

from schedc.cost.bounds import bounds
from schedc.cost.machine import Machine
from schedc.cost.report import predict
from schedc.cost.simulate import simulate
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

TARGET = parse_target("tpu7x")


def test_bounds_of_three_transfers():
    """24 rows at 10 ns; two computations of 50; a read, a write and nothing else after one another."""
    program, machine = parse_program(THREE_TRANSFERS), round_machine()
    least = bounds(program, machine, simulate(program, machine))
    assert (least.hbm_ns, least.compute_ns, least.latency_ns) == (240, 100, 180)
    assert least.largest == ("hbm", 240)
    assert least.distances(595.0) == {"hbm": 595 / 240, "compute": 5.95, "latency": 595 / 180}


@pytest.mark.parametrize("model", ["smollm2-135m", "qwen3-0.6b", "qwen3-8b"])
@pytest.mark.parametrize("policy", ["just_in_time", "double_buffer", "ring"])
def test_no_step_beats_a_bound(model: str, policy: str):
    program = schedule(load_spec(model), StepShape(4, 4096), TARGET, policy).program
    report = predict(program, TARGET)
    assert all(bound.step_over_bound is None or bound.step_over_bound >= 1.0 for bound in report.bounds.values())


def test_the_report_is_plain_data_that_adds_up():
    program = schedule(load_spec("smollm2-135m"), StepShape(2, 4096), TARGET, "ring").program
    data = predict(program, TARGET, {"active": [1, 0]}).to_dict()
    assert json.loads(json.dumps(data))["bounds"]["hbm"]["time_us"] == data["bounds"]["hbm"]["time_us"]
    assert (data["position"], data["active_rows"], data["clock_mhz"], data["notes"]) == ((2048, 2048), 1, 1900.0, ())
    phases = data["phases"]
    assert [phase["name"] for phase in phases[:5]] == ["prologue", "fetch", "embed", "mixer_norm", "qkv"]
    qkv = phases[4]
    assert (qkv["executions"], qkv["bytes"]) == (30, 30 * 2304 * 512)
    assert sum(phase["time_us"] for phase in phases) == pytest.approx(data["step_us"], abs=0.02)
    assert sum(phase["bytes"] for phase in phases) == data["hbm_bytes_read"] + data["hbm_bytes_written"]
    assert data["compute_us"] + data["issue_us"] + data["stall_us"] == pytest.approx(data["step_us"], abs=0.005)


def test_the_same_program_gives_the_same_report():
    program = schedule(load_spec("smollm2-135m"), StepShape(2, 4096), TARGET, "ring").program
    assert predict(program, TARGET) == predict(program, TARGET)


def test_the_clock_is_a_parameter():
    program = schedule(load_spec("smollm2-135m"), StepShape(1, 4096), TARGET, "ring").program
    slow, fast = (predict(program, TARGET, machine=replace(Machine.of(TARGET), clock_ghz=g)) for g in (1.6, 2.2))
    assert (slow.clock_mhz, fast.clock_mhz) == (1600.0, 2200.0)
    assert fast.step_us < slow.step_us
    assert fast.bounds["hbm"] != slow.bounds["hbm"]
    assert fast.bounds["hbm"].time_us == slow.bounds["hbm"].time_us
