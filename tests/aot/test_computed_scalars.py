"""Scalars that a computation sets steer transfers and loops: compiled, and interpreted with other values per device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify
from tests.aot.devices import compiled, interpreted

pytestmark = pytest.mark.kernel

SUM_OF_CHOSEN = """\
program chosen {
  devices 2
  attribute vmem_limit_bytes = 67043328
  pool work rows=40
  buffer ids in work rows=8 slots=1 align=8 at 0
  buffer tile in work rows=8 slots=3 align=8 at 8
  buffer total in work rows=8 slots=1 align=8 at 32
  hbm routes rows=8 input
  hbm counts rows=8 input
  hbm w rows=64 input
  hbm y rows=8 output
  smem chosen[4] in 0..7 local
  smem count[1] in 0..4 local
  semaphore loaded[1] dma
  semaphore arrived[3] dma
  semaphore stored[1] dma
  start counts[0 +: 8] -> ids[0 +: 8] signals loaded
  wait loaded rows=8
  compute vector_to_scalars(x: read ids[0 +: 8]) sets values=count {count=1}
  start routes[0 +: 8] -> ids[0 +: 8] signals loaded
  wait loaded rows=8
  compute vector_to_scalars(x: read ids[0 +: 8]) sets values=chosen {count=4}
  compute zero(out: write total[0 +: 8])
  when 0 < count[0] {
    start w[chosen[0] * 8 +: 8] -> tile[0 +: 8] signals arrived
  }
  loop e < count[0] {
    when e + 1 < count[0] {
      start w[chosen[e + 1] * 8 +: 8] -> tile<(e + 1) % 3>[0 +: 8] signals arrived[(e + 1) % 3]
    }
    wait arrived[e % 3] rows=8
    compute residual_add(x: update total[0 +: 8], y: read tile<e % 3>[0 +: 8]) {rows=8, columns=128, multiplier=1.0}
  }
  start total[0 +: 8] -> y[0 +: 8] signals stored
  wait stored rows=8
}
"""
CHOSEN = np.array([[5, 0, 7, 2], [1, 1, 6, 3]])
COUNT = np.array([4, 2])


def test_the_program_is_proven_for_all_values_of_the_ranges() -> None:
    limits = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
    assert str(verify(parse_program(SUM_OF_CHOSEN), limits)) == "proven"


def test_every_device_adds_up_the_tiles_that_it_has_computed_the_numbers_of() -> None:
    weights = np.random.default_rng(0).integers(-64, 64, (2, 64, 128)).astype(np.float32)
    routes, counts = np.zeros((2, 8, 128), np.int32), np.zeros((2, 8, 128), np.int32)
    routes[:, 0, :4], counts[:, 0, 0] = CHOSEN, COUNT
    tiles = weights.reshape(2, 8, 8, 128)
    expected = np.stack([tiles[d, CHOSEN[d, : COUNT[d]]].sum(axis=0) for d in range(2)])
    inputs = {"routes": routes, "counts": counts, "w": weights.view(np.int32)}
    for mode, answer in interpreted(SUM_OF_CHOSEN, inputs).items():
        assert np.array_equal(answer.outputs["y"].view(np.float32), expected), mode
        assert not answer.raced, mode


def test_the_compiler_takes_it_and_keeps_the_order_of_transfers(tmp_path: Path) -> None:
    _, differences = compiled(parse_program(SUM_OF_CHOSEN), tmp_path)
    assert differences == []
