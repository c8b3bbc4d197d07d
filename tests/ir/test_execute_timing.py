"""Timings: the first seeds go to the limits, and the reference run lets a device go on as soon as it can."""

from __future__ import annotations

import pytest

from schedc.ir.execute import run, unfold
from schedc.ir.execute.timing import timing
from schedc.ir.execute.trace import Work
from schedc.ir.text_parse import parse_program

UNCHECKED = """
# Ten messages through one slot, without asking the receiver whether it has read the last one.
program unchecked {
  devices 2
  pool work rows=16
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer inbox in work rows=8 slots=1 align=8 at 8
  semaphore sent[1] dma
  semaphore arrived[1] dma
  semaphore ready[1] regular
  barrier
  loop m < 10 {
    when rank == SENDER {
      compute make(out: write x[0 +: 8])
      remote.start x[0 +: 8] -> inbox[0 +: 8] on rank ^ 1 sent sent signals arrived
      wait sent rows=8
      TELL
    }
    when rank != SENDER {
      HEAR
      compute use(x: read inbox[0 +: 8])
    }
    TOGETHER
  }
  ALL
}
"""
PARTS = ("TELL", "HEAR", "TOGETHER", "ALL")
ARRIVAL = {"HEAR": "wait arrived rows=8"}
SIGNAL = {
    "TELL": "signal ready amount=1 on rank ^ 1",
    "HEAR": "await ready amount=1",
    "ALL": "when rank != SENDER {\nwait arrived rows=80\n}",
}


def unchecked(sender: int, parts: dict[str, str]) -> str:
    text = UNCHECKED
    for part in PARTS:
        text = text.replace(part, parts.get(part, ""))
    return text.replace("SENDER", str(sender))


@pytest.mark.parametrize("parts", [ARRIVAL, SIGNAL])
@pytest.mark.parametrize(("sender", "messages"), [(1, 10), (0, 1)])
def test_in_the_reference_run_the_lowest_device_goes_on_as_soon_as_it_can(parts, sender, messages):
    """So a receiver 0 sees each message, and a receiver 1 the last one ten times."""
    trace = unfold(parse_program(unchecked(sender, parts)), {})
    seen = [step.reads[0].expected[0] for step in trace.steps[1 - sender] if isinstance(step, Work)]
    assert len(seen) == 10
    assert len(set(seen)) == messages


def test_after_a_barrier_the_lowest_device_goes_on_first():
    """Device 0 reads what it was sent before the barrier; device 1 sends again behind it."""
    text = """program p {
      devices 2
      pool work rows=16
      buffer x in work rows=8 slots=1 align=8 at 0
      buffer inbox in work rows=8 slots=1 align=8 at 8
      semaphore sent[1] dma
      semaphore arrived[1] dma
      barrier
      loop m < 2 {
        when rank == 1 {
          compute make(out: write x[0 +: 8])
          remote.start x[0 +: 8] -> inbox[0 +: 8] on 0 sent sent signals arrived
          wait sent rows=8
        }
        barrier
        when rank == 0 {
          compute use(x: read inbox[0 +: 8])
        }
      }
      when rank == 0 {
        wait arrived rows=16
      }
    }"""
    trace = unfold(parse_program(text), {})
    assert len({step.reads[0].expected[0] for step in trace.steps[0] if isinstance(step, Work)}) == 2


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_the_first_seeds_leave_each_device_behind_under_each_extreme(devices):
    extremes = set()
    for seed in range(4 * devices):
        drawn = timing(seed, devices)
        assert sorted(drawn.order()) == list(range(devices))
        assert drawn.is_strict
        delays = drawn.reading.delay(drawn.chance), drawn.writing.delay(drawn.chance), drawn.transfers_first
        extremes.add((delays, drawn.order()[-1]))
    assert extremes == {
        (delays, last)
        for delays in ((None, None, True), (0, 0, True), (0, None, True), (None, None, False))
        for last in range(devices)
    }


def test_a_device_of_higher_priority_goes_on_as_soon_as_it_can():
    """The receiver, which the reference run keeps behind, is ahead here and reads each message at once."""
    trace = unfold(parse_program(unchecked(0, ARRIVAL)), {})
    (soonest,) = (
        seed
        for seed in range(8)
        if timing(seed, 2).order() == (1, 0) and timing(seed, 2).writing.delay(timing(seed, 2).chance) == 0
    )
    assert [fault.kind for fault in run(trace, soonest)] == ["wrong-read"] * 9


def test_later_seeds_are_of_many_kinds():
    drawn = [timing(seed, 2) for seed in range(8, 108)]
    assert {x.order()[0] for x in drawn} == {0, 1}
    assert {x.is_strict for x in drawn} == {True, False}
    assert len({(x.reading, x.writing) for x in drawn}) > 50
