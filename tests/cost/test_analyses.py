"""Chains of dependences, idle times by cause and critical paths, worked by hand, and what holds for all of them."""

from itertools import pairwise

import pytest
from machines import round_machine
from test_links import DECLARED, TO_THE_SIBLING
from test_simulate import THREE_TRANSFERS

from schedc.cost.bounds import bounds
from schedc.cost.critical import critical_path, largest_parts, period, shares
from schedc.cost.dependence import dependences, longest_chain
from schedc.cost.idle import idle_times
from schedc.cost.machine import Machine
from schedc.cost.timeline import Timeline
from schedc.cost.trace import Trace
from schedc.cost.traced import simulate_traced
from schedc.ir.text_parse import parse_program
from schedc.lower.graph import StepShape
from schedc.schedule.build import schedule
from schedc.spec.load import load_spec
from schedc.target.target import parse_target
from tests.reference.moe_specs import small_moe
from tests.reference.small_specs import small_spec

ONE_DEVICE = """
program one {
  pool work rows=32
  buffer a in work rows=8 slots=1 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 8
  buffer c in work rows=8 slots=1 align=8 at 16
  hbm w rows=24 weight
  smem found[1] in 0..2 local
  smem chosen[2] in 0..2 local
  semaphore arrived[2] dma
"""


def traced(*lines: str) -> tuple[Timeline, Trace]:
    timeline = simulate_traced(parse_program("\n".join(lines)), round_machine())
    assert timeline.trace is not None
    return timeline, timeline.trace


def idle(*lines: str) -> dict[tuple[str, str], float]:
    timeline, trace = traced(*lines)
    return {(part.phase, part.cause): part.ns for part in idle_times(trace, timeline.step_ns)}


def test_a_chain_goes_through_the_rows_that_are_written_and_read() -> None:
    """A zero of what nothing reads is not on it. The message takes 10 to issue, 80 on the link and 200 of latency."""
    made = "compute zero(out: write mine[0 +: 8])"
    beside = "compute zero(out: write theirs[8 +: 8])"
    after = "compute zero(x: read theirs[0 +: 8], out: write theirs[16 +: 8])"
    _, trace = traced(DECLARED, made, beside, TO_THE_SIBLING, "wait arrived rows=8", after, "}")
    chain = longest_chain(dependences(trace))
    assert (chain.ns, chain.operations) == (50 + 10 + 80 + 200 + 50, 3)
    assert chain.parts == {"exchange": 290, "zero": 100}
    assert longest_chain(dependences(trace), compute=False).ns == 280


def test_rows_overlap_wherever_their_buffers_lie() -> None:
    """`c` begins where `b` has its second half; what reads it depends on what wrote `b`."""
    text = ONE_DEVICE.replace("buffer c in work rows=8 slots=1 align=8 at 16", "buffer c in work rows=8 align=4 at 12")
    write = "compute zero(out: write b[0 +: 8])"
    read = "compute zero(x: read c[0 +: 4], out: write a[0 +: 8])"
    assert longest_chain(dependences(traced(text, write, read, "}")[1])).ns == 100
    assert longest_chain(dependences(traced(text, write, read.replace("c[0", "c[4"), "}")[1])).ns == 50


def test_an_address_that_is_computed_is_a_dependence() -> None:
    """The router's choice (`zero` here) before the start of the chosen rows, 10 to issue and 100 of latency."""
    chosen = "compute zero(out: write c[0 +: 8]) sets ids=chosen"
    start = "start w[chosen[0] * 8 +: 8] -> a[0 +: 8] signals arrived"
    use = "compute zero(x: read a[0 +: 8], out: write b[0 +: 8])"
    lines = (ONE_DEVICE, chosen, start, "wait arrived rows=8", use, "}")
    assert longest_chain(dependences(traced(*lines)[1])).ns == 50 + 10 + 100 + 50
    fixed = (ONE_DEVICE, chosen, start.replace("chosen[0] * 8", "8"), "wait arrived rows=8", use, "}")
    assert longest_chain(dependences(traced(*fixed)[1])).ns == 10 + 100 + 50


def test_idle_times_of_three_transfers() -> None:
    """The HBM is asked from 10 to 310 and from 415 on; what is stored is computed at 405. See test_simulate."""
    assert idle(THREE_TRANSFERS) == {
        ("fetch", "latency"): 10,
        ("fetch", "late"): 10,
        ("work", "latency"): 90,
        ("work", "data"): 95,
        ("store", "latency"): 80,
        ("store", "late"): 10,
    }


def test_what_is_overwritten_holds_a_start_until_it_is_read() -> None:
    """Arrived at 210, read until 260, the start issued at 270; arrived at 470, and nothing more until 520."""
    fill = "start w[0 +: 8] -> a[0 +: 8] signals arrived"
    use = "compute zero(x: read a[0 +: 8], out: write b[0 +: 8])"
    found = idle(ONE_DEVICE, fill, "wait arrived rows=8", use, fill, "wait arrived rows=8", use, "}")
    assert found == {
        ("between phases", "latency"): 200,
        ("between phases", "slots"): 50,
        ("between phases", "late"): 10 + 10,
        ("between phases", "end"): 50,
    }


def test_a_router_holds_the_start_of_what_it_chooses() -> None:
    chosen = "compute zero(out: write c[0 +: 8]) sets ids=chosen"
    start = "start w[chosen[0] * 8 +: 8] -> a[0 +: 8] signals arrived"
    found = idle(ONE_DEVICE, chosen, start, "wait arrived rows=8", "}")
    assert found == {
        ("between phases", "latency"): 100,
        ("between phases", "address"): 50,
        ("between phases", "late"): 10,
    }


def test_the_critical_path_of_three_transfers() -> None:
    """The second wait does not stall, so the path goes from the end of the first transfer through both zeros."""
    timeline, trace = traced(THREE_TRANSFERS)
    path = critical_path(trace, timeline.step_ns)
    assert [(s.cause, s.what, s.began, s.ended) for s in path] == [
        ("issue", "w -> a", 0, 10),
        ("HBM latency", "transfer of w", 10, 110),
        ("HBM shared", "transfer of w", 110, 200),
        ("HBM transfer", "transfer of w", 200, 300),
        ("computation", "zero", 300, 350),
        ("issue", "wait", 350, 355),
        ("computation", "zero", 355, 405),
        ("issue", "c -> out", 405, 415),
        ("HBM latency", "transfer of c", 415, 495),
        ("HBM transfer", "transfer of c", 495, 595),
    ]
    assert shares(path) == {
        "HBM transfer": 200, "HBM latency": 180, "computation": 100, "HBM shared": 90, "issue": 25,
    }  # fmt: skip
    assert largest_parts(path, 1) == {"transfer of w": 290}
    assert period(path) is None


def test_a_period_is_told_in_words() -> None:
    """Of four trips the third: a message of the sibling, what it waits for, and the two phases of the core.

    What the next trip takes at the loop's edge is at the end of this one.
    """
    body = """
  loop layer < 4 {
    phase make {
      compute zero(out: update mine[0 +: 8])
    }
    phase send {
      remote.start mine[0 +: 8] -> theirs[0 +: 8] on rank ^ 1 sent sent signals arrived
      wait arrived rows=8
      wait sent rows=8
    }
  }
"""
    timeline, trace = traced(DECLARED, body, "}")
    found = period(critical_path(trace, timeline.step_ns))
    assert found is not None
    assert (found.name, found.ns) == ("layer = 2", 2 + 50 + 10 + 80 + 200 + 5)
    assert [(stretch.what, stretch.ns) for stretch in found.stretches] == [
        ("make, send", 60),
        ("exchange of mine with rank 1 (link latency)", 280),
        ("send", 5 + 2),
    ]


@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("kind", ["dense", "experts"])
def test_what_is_on_the_path_and_idle_is_the_step_and_no_bound_is_beaten(devices: int, kind: str) -> None:
    spec = (
        small_moe() if kind == "experts" else small_spec({"heads": 8, "kv_heads": 8, "head_dim": 128}, {"width": 1024})
    )
    target = parse_target("tpu7x:2x2x1", devices)
    program = schedule(spec, StepShape(2, 64, devices=devices), target).program
    timeline = simulate_traced(program, Machine.of(target))
    assert timeline.trace is not None
    path = critical_path(timeline.trace, timeline.step_ns)
    assert sum(segment.ns for segment in path) == pytest.approx(timeline.step_ns)
    assert all(before.ended == pytest.approx(after.began) for before, after in pairwise(path))
    idle_ns = sum(part.ns for part in idle_times(timeline.trace, timeline.step_ns))
    assert idle_ns == pytest.approx(timeline.step_ns - timeline.hbm_busy_ns)
    least = bounds(program, Machine.of(target), timeline)
    assert set(least.named) == {"hbm", "compute", "latency", "exchanges", "dependence", "one_core"}
    assert all(0 <= ns <= timeline.step_ns for ns in least.named.values())
    assert (least.exchanges_ns == 0) == (devices == 1)


def test_every_layer_makes_the_chain_as_much_longer() -> None:
    def chain(repeat: int) -> float:
        data = load_spec("smollm2-135m").model_dump(mode="json", exclude_none=True)
        data["layers"][0]["repeat"] = repeat
        spec = type(load_spec("smollm2-135m")).model_validate(data)
        target = parse_target("tpu7x")
        timeline = simulate_traced(schedule(spec, StepShape(1, 512), target).program, Machine.of(target))
        assert timeline.trace is not None
        return longest_chain(dependences(timeline.trace)).ns

    assert chain(12) - chain(8) == pytest.approx(chain(8) - chain(4), rel=1e-6)
