"""Timelines worked by hand, and what holds for all of them."""

from dataclasses import replace

import pytest
from machines import round_machine

from schedc.cost.inputs import default_inputs
from schedc.cost.machine import Machine
from schedc.cost.simulate import Stuck, simulate
from schedc.cost.timeline import Timeline
from schedc.ir.program import Compute, Program, RemoteStart, Start, Wait, walk
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target

THREE_TRANSFERS = """
program three {
  pool work rows=24
  buffer a in work rows=8 slots=1 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 8
  buffer c in work rows=8 slots=1 align=8 at 16
  hbm w rows=16 weight
  hbm out rows=8 output
  semaphore arrived[2] dma
  semaphore stored[1] dma
  phase fetch {
    start w[0 +: 8] -> a[0 +: 8] signals arrived
    start w[8 +: 8] -> b[0 +: 8] signals arrived[1]
  }
  phase work {
    wait arrived rows=8
    compute zero(out: write c[0 +: 8])
    wait arrived[1] rows=8
    compute zero(out: update c[0 +: 8])
  }
  phase store {
    start c[0 +: 8] -> out[0 +: 8] signals stored
    wait stored rows=8
  }
}
"""
TARGET = parse_target("tpu7x")


def program(model: str, policy: str = "ring", rows: int = 1) -> Program:
    return schedule(load_spec(model), StepShape(rows, 4096), TARGET, policy).program


def run(text: str, machine: Machine) -> Timeline:
    return simulate(parse_program(text), machine, events=True)


def test_three_transfers_that_share_the_hbm():
    """The first is issued at 10 and needs the HBM from 110, the second from 120, each for 20 + 8 · 10 = 100 ns.

    At 120 the first has had 10 ns. Sharing, its other 90 take until 300; the second has had as much by then, 10 more
    alone: 310. The core has waited since 25, computes until 350, finds the second, computes until 405, starts the
    store at 415, which needs the HBM from 495 to 595.
    """
    timeline = run(THREE_TRANSFERS, round_machine())
    transfers = [(e.issued_ns, e.began_ns, e.ended_ns) for e in timeline.events if e.lane == "hbm"]
    assert transfers == [(10, 110, 300), (20, 120, 310), (415, 495, 595)]
    assert timeline.step_ns == 595
    assert timeline.hbm_busy_ns == 300
    fetch, work, store = timeline.phases
    assert (fetch.time_ns, work.time_ns, store.time_ns) == (20, 385, 190)
    assert (fetch.stall_ns, work.stall_ns, store.stall_ns) == (0, 275, 175)
    assert (fetch.hbm_unasked_ns, fetch.hbm_latency_ns) == (10, 10)
    assert (work.hbm_unasked_ns, work.hbm_latency_ns) == (95, 90)
    assert (store.hbm_unasked_ns, store.hbm_latency_ns) == (10, 80)
    assert (work.compute_cycles, work.issue_cycles) == (100, 10)
    assert (fetch.bytes_started, work.bytes_awaited) == (8192, 8192)


def test_every_event_names_its_operation():
    """In the order of `walk`: of phases, guards and cases too. The second wait finds what it waits for."""
    kinds = {"hbm": Start, "link": RemoteStart, "core": Compute, "wait": Wait, "stall": Wait}
    for made in (parse_program(THREE_TRANSFERS), program("gpt-oss-20b"), program("kimi-k3-mini")):
        ops = list(walk(made.body))
        events = simulate(made, Machine.of(TARGET), events=True).events
        assert events and all(isinstance(ops[event.op], kinds[event.lane]) for event in events)
        named = [e for e in events if e.lane == "core"]
        assert all(ops[event.op].kind == event.name for event in named)
    waits = [e for e in run(THREE_TRANSFERS, round_machine()).events if e.lane == "wait"]
    assert [(e.op, e.name, e.began_ns, e.ended_ns) for e in waits] == [
        (4, "arrived[0]", 25, 300),
        (6, "arrived[1]", 355, 355),
        (10, "stored[0]", 420, 595),
    ]


def test_three_transfers_one_after_the_other():
    """The first has the HBM from 110 to 210, the second to 310, the store, started at 370, from 450 to 550."""
    timeline = run(THREE_TRANSFERS, round_machine(in_flight=1))
    transfers = [(e.issued_ns, e.began_ns, e.ended_ns) for e in timeline.events if e.lane == "hbm"]
    assert transfers == [(10, 110, 210), (20, 210, 310), (370, 450, 550)]
    assert timeline.step_ns == 550


def test_guards_are_predicated_and_loops_take_their_trips():
    """3 trips of a loop (2 cycles) with a guard (1) and a start or its issue slot (10); one start is executed."""
    text = """
program guards {
  pool work rows=8
  buffer a in work rows=8 slots=1 align=8 at 0
  hbm w rows=8 weight
  smem active[3] in 0..1 input
  semaphore arrived[1] dma
  loop i < 3 {
    when active[i] > 0 {
      start w[0 +: 8] -> a[0 +: 8] signals arrived
    }
  }
  wait arrived rows=8
}
"""
    timeline = simulate(parse_program(text), round_machine(), {"active": [0, 1, 0]})
    assert timeline.transfers == 1
    assert timeline.cycles == 3 * (2 + 1 + 10) + 5
    assert timeline.step_ns == 2 * (2 + 1 + 10) + 100 + 100


def test_a_wait_that_nothing_can_end_is_named():
    text = THREE_TRANSFERS.replace("    start w[8 +: 8] -> b[0 +: 8] signals arrived[1]\n", "")
    expected = r"three: the wait for 8 of arrived\[1\] in phase 'work' never ends: it holds 0 and nothing is in flight"
    with pytest.raises(Stuck, match=expected):
        run(text, round_machine())


def test_an_unknown_computation_counts_nothing_and_is_noted():
    timeline = run(THREE_TRANSFERS.replace("compute zero", "compute sorcery"), round_machine())
    assert timeline.notes == ("sorcery: no cycles are known, counted as 0",)
    assert timeline.phases[1].compute_cycles == 0


def test_what_a_computation_sets_is_the_most_work_unless_it_is_given():
    text = """
program chosen {
  pool work rows=8
  buffer a in work rows=8
  hbm first rows=24 weight
  smem found[1] in 0..4 local
  smem chosen[4] in 0..2 local
  semaphore arrived dma
  compute route() sets ids=chosen, count=found
  loop e < found[0] {
    start first[chosen[e] * 8 +: 8] -> a[0 +: 8] signals arrived
    wait arrived rows=8
  }
}
"""
    program = parse_program(text)
    assert default_inputs(program) == {"found": [4], "chosen": [0, 1, 2, 0]}
    assert simulate(program, round_machine()).transfers == 4
    assert simulate(program, round_machine(), {"found": [2]}).transfers == 2


def test_inputs_that_the_program_does_not_have_are_refused():
    with pytest.raises(ValueError, match="three has no input active; it has"):
        simulate(parse_program(THREE_TRANSFERS), round_machine(), {"active": [1]})


@pytest.mark.parametrize("model", ["smollm2-135m", "llama-3.1-8b"])
def test_the_step_is_shorter_the_more_is_prefetched(model: str):
    machine = Machine.of(TARGET)
    just_in_time, double_buffer, ring = (
        simulate(program(model, policy), machine).step_ns for policy in ("just_in_time", "double_buffer", "ring")
    )
    assert ring < double_buffer < just_in_time


@pytest.mark.parametrize("policy", ["just_in_time", "ring"])
def test_every_streamed_weight_is_read_exactly_once(policy: str):
    streamed = program("smollm2-135m", policy)
    timeline = simulate(streamed, Machine.of(TARGET))
    weights = {array.name: array.rows * 512 for array in streamed.arrays if array.role == "weight"}
    gathered = {"embedding": 3 * 512, "rope": 2 * 512}
    assert {name: timeline.read[name] for name in weights} == weights | gathered
    assert sum(phase.bytes_awaited for phase in timeline.phases) == timeline.hbm_bytes
    assert sum(phase.bytes_started for phase in timeline.phases) == timeline.hbm_bytes


def test_the_cache_is_read_up_to_the_position_and_a_chunk_written_back():
    timelines = {
        at: simulate(program("smollm2-135m"), Machine.of(TARGET), {"position": [at]}) for at in (0, 511, 512, 4095)
    }
    tile, chunk = 768 * 512, 24 * 512
    tiles = {at: timeline.read["kv"] / (30 * tile) for at, timeline in timelines.items()}
    assert tiles == {0: 1, 511: 1, 512: 2, 4095: 8}
    assert all(timeline.written["kv"] == 30 * chunk for timeline in timelines.values())
    assert timelines[0].step_ns < timelines[4095].step_ns


def test_an_inactive_row_moves_no_cache():
    rows = program("smollm2-135m", rows=2)
    both, one = (simulate(rows, Machine.of(TARGET), {"active": active}) for active in ([1, 1], [1, 0]))
    assert one.read["kv"] * 2 == both.read["kv"]
    assert one.step_ns <= both.step_ns


def test_time_is_cycles_and_stalls_and_nothing_else():
    machine = Machine.of(TARGET)
    timeline = simulate(program("smollm2-135m"), machine)
    assert sum(phase.time_ns for phase in timeline.phases) == pytest.approx(timeline.step_ns)
    assert timeline.cycles / machine.clock_ghz + timeline.stall_ns == pytest.approx(timeline.step_ns)
    idle = sum(phase.hbm_idle_ns for phase in timeline.phases)
    assert timeline.hbm_busy_ns + idle == pytest.approx(timeline.step_ns)


@pytest.mark.parametrize("change", [{"clock_ghz": 2.2}, {"bytes_per_ns": 3690.0}, {"descriptor_ns": 0.0}])
def test_a_faster_part_never_makes_the_step_slower(change: dict[str, float]):
    slow = Machine.of(TARGET)
    fast = replace(slow, **change)  # type: ignore[arg-type]
    for policy in ("just_in_time", "double_buffer", "ring"):
        step = program("smollm2-135m", policy)
        assert simulate(step, fast).step_ns <= simulate(step, slow).step_ns
