"""Random programs of four devices that access rows by tables of their ranks while transfers into some are under way."""

from __future__ import annotations

import random

_PROGRAM = """
program gathers {{
  devices 4
  pool work rows=64
  buffer x in work rows=32 slots=1 align=8 at 0
  buffer y in work rows=32 slots=1 align=8 at 32
  hbm pages rows=64 state
{tables}
  semaphore sent[1] dma
  semaphore arrived[1] dma
  semaphore read[4] dma
  compute zero(x: write x[0 +: 32], y: write y[0 +: 32])
  barrier
  loop l < 3 {{
    loop p < 3 {{
      remote.start x[rank * 8 +: 8] -> x[rank * 8 +: 8] on rank ^ p + 1 sent sent signals arrived
    }}
    {body}
    wait arrived rows=24
    wait sent rows=24
    compute look(x: read x[0 +: 32], y: read y[0 +: 32])
    barrier
  }}
}}
"""
_ORDERS = ((0, 8, 16, 24), (8, 0, 24, 16), (16, 24, 0, 8), (24, 16, 8, 0))


def random_gathers(seed: int) -> str:
    """Rows of `y`, and those of `x` that are the device's own, read and written between a start and its wait."""
    rng = random.Random(seed)
    count = rng.randint(2, 3)
    tables = [list(order) for order in rng.sample(_ORDERS, count)]
    if rng.random() < 0.7:
        on = rng.randrange(1, 4)
        tables[0][on] = tables[1][on]
    rows = [f"y[place{i}[rank] +: 8]" for i in range(count)]
    lines, open_reads = [], 0
    for _ in range(rng.randint(3, 6)):
        kind = rng.choice(("start", "write", "read", "own"))
        if kind == "start" and open_reads < 2:
            ends = [f"pages[{8 * open_reads} +: 8]", rng.choice(rows)]
            lines.append(f"start {ends[0]} -> {ends[1]} signals read[{open_reads}]")
            open_reads += 1
        elif kind == "own":
            lines.append("compute own(x: read x[rank * 8 +: 8])")
        else:
            access = "write" if kind == "write" else "read"
            lines.append(f"compute {access}s(y: {access} {rng.choice(rows)})")
    lines += [f"wait read[{i}] rows=8" for i in range(open_reads)]
    declared = "\n".join(f"  table place{i} = {', '.join(map(str, table))}" for i, table in enumerate(tables))
    return _PROGRAM.format(tables=declared, body="\n    ".join(lines))
