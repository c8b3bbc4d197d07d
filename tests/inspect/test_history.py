"""What happened in a simulated step, in a program worked by hand (tests/inspect/programs.py)."""

from itertools import pairwise

import pytest

from schedc.inspect.arrivals import Arrival, Taking, taken
from schedc.inspect.history import History, history
from schedc.inspect.path import idle_times, path_of
from schedc.inspect.runs import runs_of
from schedc.inspect.vmem_map import vmem_map
from schedc.ir.text_parse import parse_program
from tests.cost.machines import round_machine
from tests.inspect.programs import RING


@pytest.fixture(scope="module")
def ring() -> History:
    return history(parse_program(RING), round_machine())


def phase(ring: History, step: int | None) -> str | None:
    return None if step is None else ring.phase_of[ring.steps[step].op]


def test_a_transfer_is_followed_over_its_wait_to_its_uses(ring: History) -> None:
    first, chosen, refill, result = ring.transfers
    assert [round(t.issued) for t in ring.transfers] == [10, 73, 308, 568]
    assert [round(t.ended) for t in ring.transfers] == [247, 310, 508, 748]
    assert [phase(ring, t.wait) for t in ring.transfers] == ["add", "add", "last", "store"]
    assert [phase(ring, t.first_use) for t in ring.transfers] == ["add", "add", "last", None]
    assert ring.steps[first.wait or 0].trips == (("t", 0),)
    assert ring.steps[chosen.first_use or 0].trips == (("t", 1),)
    assert (chosen.target.row, refill.target.row) == (8, 0), "slot 1, then slot 0"
    assert result.target.storage == "out"


def test_a_wait_knows_what_it_took_and_whether_it_blocked(ring: History) -> None:
    assert [wait.took for wait in ring.waits] == [(0,), (1,), (2,), (3,)]
    assert [wait.blocked for wait in ring.waits] == [True, False, True, True]
    assert (round(ring.waits[0].reached), round(ring.waits[0].ended)) == (80, 247)


def test_phases_are_spans_in_order_and_the_loop_of_tiles_is_no_layer(ring: History) -> None:
    assert [span.name for span in ring.phases] == ["prologue", "choose", "add", "add", "last", "store"]
    assert all(a.ended <= b.began for a, b in pairwise(ring.phases))
    assert [span.name for span in ring.layers] == ["layer 0", "layer 1"], "trips of a loop with phases in it"


def test_slots_are_filled_until_their_last_reader(ring: History) -> None:
    rects = [r for r in vmem_map(ring, 2**20).rects if r.kind != "live"]
    assert [(r.buffer, r.kind, r.row, round(r.began), round(r.ended)) for r in rects] == [
        ("tile", "arriving", 0, 10, 247),
        ("tile", "held", 0, 247, 297),
        ("tile", "arriving", 8, 73, 310),
        ("tile", "held", 8, 310, 365),
        ("tile", "arriving", 0, 308, 508),
        ("tile", "held", 0, 508, 558),
    ]


def test_the_map_has_every_buffer_while_it_is_live(ring: History) -> None:
    vmem = vmem_map(ring, 2**20, {"internal": 1024, "spill": 0})
    assert [(b.name, row) for b, row in vmem.buffers] == [("tile", 0), ("sum", 16)]
    live = {(r.buffer, round(r.began), round(r.ended)) for r in vmem.rects if r.kind == "live"}
    step = round(ring.timeline.step_ns)
    assert ("tile", 0, 558) in live, "from the first start to behind the last reader"
    assert ("sum", 10, step) in live
    assert (vmem.peak_rows, round(vmem.peak_ns)) == (24, 10)
    assert vmem.compiler == (("internal", 1024),)
    assert vmem.slack_rows == 2**20 // 512 - 40 - 2


def test_idle_times_fill_what_the_transfers_leave_and_add_up_to_the_simulations(ring: History) -> None:
    idle = idle_times(ring)
    assert [(i.cause, round(i.began), round(i.ended)) for i in idle] == [
        ("late", 0, 10),
        ("latency", 10, 110),
        ("latency", 310, 408),
        ("data", 508, 558),
        ("late", 558, 568),
        ("latency", 568, 648),
    ]
    phases = ring.timeline.phases
    latency = sum(i.ended - i.began for i in idle if i.cause == "latency")
    assert latency == pytest.approx(sum(phase.hbm_latency_ns for phase in phases))
    assert sum(i.ended - i.began for i in idle) == pytest.approx(sum(phase.hbm_idle_ns for phase in phases))


def test_the_critical_path_has_no_gap_and_names_the_transfers_that_held_up_the_core(ring: History) -> None:
    path = path_of(ring)
    assert path[0].began == 0.0 and path[-1].ended == ring.timeline.step_ns
    assert all(a.ended == b.began for a, b in pairwise(path))
    assert [(part.kind, part.transfer, round(part.ended)) for part in path if part.cause != "HBM latency"] == [
        ("core", None, 10),
        ("hbm", 0, 147),
        ("hbm", 0, 247),
        ("core", None, 308),
        ("hbm", 2, 508),
        ("core", None, 568),
        ("hbm", 3, 748),
    ]


def test_rows_are_taken_in_the_order_in_which_they_came() -> None:
    arrivals = [Arrival("s", 3.0, 2, 2), Arrival("s", 1.0, 3, 0), Arrival("s", 2.0, 5, 1), Arrival("other", 0.0, 1, 9)]
    takings = [Taking("s", 4, 0), Taking("s", 6, 1)]
    assert [(a.transfer, wait) for a, wait in taken(arrivals, takings)] == [(0, 0), (1, 1), (2, 1)]


def test_every_step_is_in_one_slice_of_the_core(ring: History) -> None:
    runs = runs_of(ring)
    assert [step for run in runs for step in range(run.first, run.last + 1)] == list(range(len(ring.steps)))


def test_layers_whose_phases_take_turns_meet_where_least_is_on_the_wrong_side() -> None:
    program = parse_program(TURNS)
    found = history(program, round_machine())
    names = [span.name for span in found.phases]
    assert names == ["a_0_0", "b_0_0", "a_1_0", "c_0_0", "b_1_0", "c_1_0"]
    assert [(s.name, round(s.began), round(s.ended)) for s in found.layers] == [
        ("layer 0", 0, 300),
        ("layer 1", 300, 500),
    ]


TURNS = """
program turns {
  pool work rows=8
  buffer x in work rows=8 slots=1 align=8 at 0
  phase a_0_0 {
    compute zero(out: write x[0 +: 8])
  }
  phase b_0_0 {
    compute zero(out: write x[0 +: 8])
  }
  phase a_1_0 {
    compute zero(out: write x[0 +: 8])
  }
  phase c_0_0 {
    compute zero(out: write x[0 +: 8])
    compute zero(out: write x[0 +: 8])
    compute zero(out: write x[0 +: 8])
  }
  phase b_1_0 {
    compute zero(out: write x[0 +: 8])
    compute zero(out: write x[0 +: 8])
  }
  phase c_1_0 {
    compute zero(out: write x[0 +: 8])
    compute zero(out: write x[0 +: 8])
  }
}
"""
"""A phase of layer 1 runs before the last one of layer 0; every computation takes 50 ns."""
