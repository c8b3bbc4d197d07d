"""Switches over tables in a timeline, and programs of one device that want others."""

import re

import pytest
from machines import round_machine

from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.ir.text_parse import parse_program

DECLARED = """
program switching {
  pool work rows=8
  buffer a in work rows=8 slots=1 align=8 at 0
  hbm w rows=8 weight
  table kind = 1, 0, 1, 2
  semaphore arrived[1] dma
  semaphore ready[1] regular
"""


def test_a_case_runs_for_its_value_and_a_predicated_start_takes_its_slot_in_every_trip() -> None:
    """Four trips of 2 for the loop, 3 for the selector, 1 a case, 10 for the start, run or not; `zero` twice 50."""
    body = """
  loop l < 4 {
    switch kind[l] {
      case 0 {
        start w[0 +: 8] -> a[0 +: 8] signals arrived
      }
      case 1 {
        compute zero(out: write a[0 +: 8])
      }
      case 2 {
      }
    }
  }
"""
    timeline = simulate(parse_program(f"{DECLARED}{body}}}"), round_machine())
    assert timeline.transfers == 1
    assert timeline.cycles == 4 * (2 + 3 + 3 * 1 + 10) + 2 * 50


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("barrier", "`barrier` needs other devices, the program has one"),
        ("signal ready amount=1 on rank ^ 1", "`signal ready amount=1 on rank ^ 1` needs other devices"),
    ],
)
def test_what_needs_other_devices_is_refused_in_a_program_of_one(body: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        simulate(parse_program(f"{DECLARED}{body}\n}}"), round_machine())


def test_the_rank_of_the_one_device_is_zero() -> None:
    body = "when rank ^ 1 == 1 {\n compute zero(out: write a[0 +: 8])\n}"
    assert simulate(parse_program(f"{DECLARED}{body}\n}}"), round_machine()).cycles == 1 + 50
