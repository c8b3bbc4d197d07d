"""Addresses by quotients of one number, whatever a step of the smaller quotient is worth."""

from __future__ import annotations

import pytest

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=64)

PROGRAM = """
program chunks {{
  pool cache rows={rows}
  buffer tile in cache rows={rows} slots=1 align=8 at 0
  hbm kv rows={rows} state
  smem position[1] in 0..4095 input
  semaphore arrived[1] dma
  semaphore written[1] dma
  start kv[0 +: {rows}] -> tile[0 +: {rows}] signals arrived
  wait arrived rows={rows}
  start tile[position[0] % 512 // 16 * {step} +: 8] -> kv[position[0] % 512 // 16 * {step} +: 8] signals written
  wait written rows=8
}}
"""


@pytest.mark.parametrize("step", [8, 16, 24, 40, 64])
def test_a_quotient_of_a_remainder_stays_in_its_range(step: int) -> None:
    program = parse_program(PROGRAM.format(step=step, rows=31 * step + 8))
    assert verify(program, LIMITS).refusals == ()


@pytest.mark.parametrize("step", [8, 24, 64])
def test_one_row_less_is_out_of_range(step: int) -> None:
    program = parse_program(PROGRAM.format(step=step, rows=31 * step))
    assert "out-of-range" in {refusal.rule for refusal in verify(program, LIMITS).refusals}
