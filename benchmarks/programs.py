"""Programs in the text form that grow with a number: what the benchmarks of the proof measure."""

from __future__ import annotations

from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program

RING = """
program ring {{
  devices {devices}
  pool ring rows=16
  pool work rows={work}
  buffer w in ring rows=8 slots=2 align=8 at 0
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer total in work rows=8 slots=1 align=8 at 8
  buffer gathered in work rows={all} slots=1 align=8 at 16
  hbm weights rows={weights} weight
  hbm out rows=8 output
  semaphore arrived[2] dma
  semaphore sent[{steps}] dma
  semaphore received[{steps}] dma
  semaphore stored[1] dma
  semaphore credit[1] regular
  compute zero(out: write x[0 +: 8])
  start weights[0 +: 8] -> w[0 +: 8] signals arrived
  barrier
  loop l < {layers} {{
    when l + 1 < {layers} {{
      start weights[(l + 1) * 8 +: 8] -> w<(l + 1) % 2>[0 +: 8] signals arrived[(l + 1) % 2]
    }}
    wait arrived[l % 2] rows=8
    when l > 0 {{
      await credit amount=1
    }}
    compute matmul(x: read x[0 +: 8], w: read w<l % 2>[0 +: 8], out: write gathered[rank * 8 +: 8])
    loop s < {steps} {{
      remote.start gathered[(rank + {devices} - s) % {devices} * 8 +: 8]
        -> gathered[(rank + {devices} - s) % {devices} * 8 +: 8] on (rank + 1) % {devices}
        sent sent[s] signals received[s]
      wait received[s] rows=8
    }}
    compute sum(all: read gathered[0 +: {all}], out: write total[0 +: 8])
    loop s < {steps} {{
      wait sent[s] rows=8
    }}
    when l + 1 < {layers} {{
      signal credit amount=1 on (rank + {steps}) % {devices}
    }}
    compute add(total: read total[0 +: 8], x: update x[0 +: 8])
  }}
  start x[0 +: 8] -> out[0 +: 8] signals stored
  wait stored rows=8
}}
"""


def ring_all_gather(devices: int, layers: int) -> Program:
    """In each layer the devices gather a part of each other round a ring; a credit bounds how far one is ahead."""
    return parse_program(
        RING.format(
            devices=devices,
            layers=layers,
            steps=devices - 1,
            all=8 * devices,
            work=16 + 8 * devices,
            weights=8 * layers,
        )
    )


STRAIGHT = """
program straight {{
  pool work rows={rows}
  buffer tile in work rows=8 slots={slots} align=8 at 0
  buffer sum in work rows=8 slots=1 align=8 at {sum}
  hbm weights rows={weights} weight
  hbm out rows=8 output
  semaphore arrived[{slots}] dma
  semaphore stored[1] dma
  compute zero(out: write sum[0 +: 8])
{body}
  start sum[0 +: 8] -> out[0 +: 8] signals stored
  wait stored rows=8
}}
"""


def straight(transfers: int, depth: int = 8) -> Program:
    """No loops: each tile is started `depth` tiles before it is awaited and used."""
    lines = []
    for i in range(transfers + depth):
        if i >= depth:
            slot = (i - depth) % (depth + 1)
            lines.append(f"  wait arrived[{slot}] rows=8")
            lines.append(f"  compute add(x: read tile<{slot}>[0 +: 8], out: update sum[0 +: 8])")
        if i < transfers:
            slot = i % (depth + 1)
            lines.append(f"  start weights[{8 * i} +: 8] -> tile<{slot}>[0 +: 8] signals arrived[{slot}]")
    slots = depth + 1
    return parse_program(
        STRAIGHT.format(rows=8 * slots + 8, slots=slots, sum=8 * slots, weights=8 * transfers, body="\n".join(lines))
    )
