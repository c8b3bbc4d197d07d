"""Random programs of four devices whose buffers take turns in the same rows, addressed by tables of the ranks."""

from __future__ import annotations

import random

_PROGRAM = """
program turns {{
  devices 4
  pool work rows=88
  buffer x in work rows=32 slots=1 align=8 at 0
  buffer w in work rows=48 slots=1 align=8 at 0
  buffer y in work rows=32 slots=1 align=8 at 48
  buffer z in work rows=40 slots=1 align=8 at 48
  hbm pages rows=64 state
{tables}
  semaphore sent[1] dma
  semaphore arrived[1] dma
  semaphore read[4] dma
  barrier
  loop l < 2 {{
    compute own(x: write x[rank * 8 +: 8])
    loop p < 3 {{
      remote.start x[rank * 8 +: 8] -> x[rank * 8 +: 8] on rank ^ p + 1 sent sent signals arrived
    }}
    {body}
    wait arrived rows=24
    {between}
    wait sent rows=24
    {after}
    barrier
  }}
}}
"""
_ORDERS = ((0, 8, 16, 24), (8, 0, 24, 16), (16, 24, 0, 8), (24, 16, 8, 0))


def random_turns(seed: int) -> str:
    """Each buffer is filled and used for a while, the other one of its rows sometimes meanwhile."""
    rng = random.Random(seed)
    tables = [list(order) for order in rng.sample(_ORDERS, 2)]
    if rng.random() < 0.5:
        on = rng.randrange(1, 4)
        tables[0][on] = tables[1][on]
    beyond = [32, 32, 32, 32]
    if rng.random() < 0.5:
        beyond[rng.randrange(1, 4)] = rng.choice((0, 8, 16, 24))
    tables.append(beyond)
    parts = {"body": _episodes(rng), "between": [], "after": []}
    part = rng.choice(("body", "between", "after", "after"))
    parts[part].append(f"compute mark(w: write w[place{rng.randrange(3)}[rank] +: 8])")
    parts[rng.choice(("between", "after"))].insert(0, "compute look(x: read x[0 +: 32])")
    declared = "\n".join(f"  table place{i} = {', '.join(map(str, table))}" for i, table in enumerate(tables))
    return _PROGRAM.format(tables=declared, **{name: "\n    ".join(lines) for name, lines in parts.items()})


def _episodes(rng: random.Random) -> list[str]:
    lines: list[str] = []
    reads = 0
    for mine in rng.choice(("yz", "yzy", "zy")):
        lines.append(f"compute fill({mine}: write {mine}[0 +: {32 if mine == 'y' else 40}])")
        waits: list[str] = []
        for _ in range(rng.randint(1, 3)):
            buffer = mine if rng.random() < 0.85 else "zy"[mine == "z"]
            rows = f"{buffer}[place{rng.randrange(3 if buffer == 'z' else 2)}[rank] +: 8]"
            kind = rng.choice(("start", "write", "read"))
            if kind != "start":
                lines.append(f"compute {kind}s({buffer}: {kind} {rows})")
            elif reads < 4:
                lines.append(f"start pages[{8 * reads} +: 8] -> {rows} signals read[{reads}]")
                waits.append(f"wait read[{reads}] rows=8")
                reads += 1
        lines += waits
    return lines
