"""Programs worked by hand, on a machine with round numbers (tests/cost/machines.py)."""

from schedc.inspect.flow import Flow, flow_of
from schedc.ir.text_parse import parse_program
from tests.cost.machines import round_machine

RING = """
program ring {
  pool work rows=40
  buffer tile in work rows=8 slots=2 align=8 at 0
  buffer sum in work rows=8 slots=1 align=8 at 16
  hbm w rows=32 weight
  hbm out rows=8 output
  smem chosen[1] in 0..3 local
  semaphore arrived[2] dma
  semaphore stored[1] dma
  phase prologue {
    start w[0 +: 8] -> tile[0 +: 8] signals arrived
  }
  phase choose {
    compute zero(out: write sum[0 +: 8])
    set chosen[0] = 3
    start w[chosen[0] * 8 +: 8] -> tile<1>[0 +: 8] signals arrived[1]
  }
  loop t < 2 {
    phase add {
      wait arrived[t % 2] rows=8
      compute zero(x: read tile<t % 2>[0 +: 8], out: update sum[0 +: 8])
      when t < 1 {
        start w[16 +: 8] -> tile<t % 2>[0 +: 8] signals arrived[t % 2]
      }
    }
  }
  phase last {
    wait arrived rows=8
    compute zero(x: read tile[0 +: 8], out: update sum[0 +: 8])
  }
  phase store {
    start sum[0 +: 8] -> out[0 +: 8] signals stored
    wait stored rows=8
  }
}
"""
"""Four transfers: the first, one whose address is chosen, a refill of slot 0 and the result.

ns of the core: start 10, compute 60, set 63, start 73, two turns of loops and a wait 80. The first asks for the HBM at
110 and takes 20 + 8 · 10 = 100 alone: until 173 it has had 63; then both share, and it ends 37 · 2 later, at 247. The
second has had 37 by then and ends at 310. The core adds until 297 and issues the refill at 308: on its way until 408,
there at 508. The core is at its wait at 381, adds until 558, issues the result at 568, which is there at 748.
"""


def ring() -> Flow:
    return flow_of(parse_program(RING), round_machine())
