"""What the checks say of switches, tables and other devices."""

from __future__ import annotations

import pytest

from schedc.backends.pallas.emit.kernel import emit
from schedc.compiler.check import expected_transfers, predicted_cycles
from schedc.compiler.skeleton import skeleton
from schedc.cost.operations import CycleTable
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.target.target import parse_target

TABLE = CycleTable.on(parse_target("tpu7x"))
DECLARED = """
program p {
  devices 4
  pool work rows=64
  buffer a in work rows=64 slots=1 align=8 at 0
  hbm w rows=64 weight
  hbm out rows=64 output
  table kind = 1, 0, 1
  semaphore s[1] dma
  semaphore t[1] dma
  semaphore ready[1] regular
  barrier
"""
SWITCH = """
    switch kind[l] {
      case 0 {
        start w[0 +: 8] -> a[0 +: 8] signals s
      }
      case 1 {
        remote.start a[0 +: 16] -> a[16 +: 16] on rank ^ 1 sent s signals t
      }
    }
"""


def program(body: str) -> Program:
    return parse_program(f"{DECLARED}{body}\n}}")


def expected(body: str) -> list[tuple[float | None, str]]:
    made = program(body)
    return [(rows, direction) for _, rows, direction in expected_transfers(made, emit(made))]


def test_a_loop_has_the_transfers_of_every_case_and_an_unrolled_one_those_of_its_own() -> None:
    assert expected(f"loop l < 3 {{ {SWITCH} }}") == [(8, "hbm_to_vmem"), (16, "general")]
    assert expected(f"loop l < 3 unroll {{ {SWITCH} }}") == [(16, "general"), (8, "hbm_to_vmem"), (16, "general")]


def test_a_condition_that_tracing_decides_leaves_nothing_of_what_it_rules_out() -> None:
    start = "start a[0 +: 8] -> out[0 +: 8] signals s"
    guarded = f"when l + 1 < 3 {{\n {start}\n }}"
    assert expected(f"loop l < 3 unroll {{\n {guarded}\n }}") == [(8, "vmem_to_hbm")] * 2
    assert expected(f"loop l < 3 {{\n {guarded}\n }}") == [(8, "vmem_to_hbm")]


def test_a_barrier_costs_a_signal_to_every_other_device_and_a_wait() -> None:
    one, two = (predicted_cycles(program(body), TABLE) for body in ("", "barrier"))
    assert two - one == pytest.approx(3 * TABLE.issue("signal") + TABLE.issue("wait"))


def test_the_skeleton_has_switches_and_what_goes_to_other_devices() -> None:
    body = f"loop l < 3 {{ {SWITCH} }}\nsignal ready amount=1 on rank ^ 1\nsignal ready amount=1\nawait ready amount=2"
    assert skeleton(program(body)) == (
        "barrier",
        "loop l",
        "  switch",
        "    case 0",
        "      start w -> a signals s",
        "    case 1",
        "      remote.start a -> a sent s signals t",
        "signal ready on a peer",
        "signal ready",
        "await ready",
    )
