"""The executor finds what bad timing does to a program."""

from __future__ import annotations

import pytest

from schedc.ir.execute import execute, run, unfold
from schedc.ir.text_parse import parse_program

DECLARATIONS = """program p {
  pool work rows=24
  buffer a in work rows=8 slots=1 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 8
  buffer c in work rows=8 slots=1 align=8 at 8
  hbm w rows=64 weight
  hbm out rows=8 output
  smem n[1] in 0..3 input
  semaphore s[2] dma
  semaphore g[1] regular
"""


def faults(body: str, n: int = 0) -> set[str]:
    trace = unfold(parse_program(DECLARATIONS + body + "\n}"), {"n": [n]})
    return {fault.kind for seed in range(30) for fault in run(trace, seed)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("start w[0 +: 8] -> a[0 +: 8] signals s\nwait s rows=8\ncompute k(x: read a[0 +: 8])", set()),
        ("start w[0 +: 8] -> a[0 +: 8] signals s\ncompute k(x: read a[0 +: 8])\nwait s rows=8", {"wrong-read"}),
        ("compute k(x: read a[0 +: 8])", {"never-written"}),
        ("compute k(o: write b[0 +: 8])\ncompute k(o: write c[0 +: 8])\ncompute k(x: read b[0 +: 8])", {"wrong-read"}),
        ("wait s rows=8", {"deadlock"}),
        ("await g amount=1", {"deadlock"}),
        ("signal g amount=1", {"semaphore-left"}),
        ("start w[0 +: 8] -> a[0 +: 8] signals s", {"unfinished", "semaphore-left"}),
        ("compute k(o: write a[0 +: 8])\nstart a[0 +: 8] -> out[0 +: 8] signals s\n"
         "compute k(o: write a[0 +: 8])\nwait s rows=8", {"wrong-read", "wrong-result"}),
    ],
)  # fmt: skip
def test_kinds_of_faults(body, expected):
    assert faults(body) == expected


def test_one_wait_may_be_satisfied_by_either_transfer():
    body = """start w[0 +: 8] -> a[0 +: 8] signals s
    start w[8 +: 8] -> b[0 +: 8] signals s
    wait s rows=8
    compute k(x: read a[0 +: 8])
    wait s rows=8"""
    assert faults(body) == {"wrong-read"}


def test_scalars_choose_trips_and_guards():
    program = parse_program(DECLARATIONS + "loop t < n[0] {\nwhen t == 2 {\ncompute k(x: read a[0 +: 8])\n}\n}\n}")
    assert [execute(program, {"n": [n]}, 0) == [] for n in (0, 2, 3)] == [True, True, False]


def test_the_same_seed_gives_the_same_run():
    program = parse_program(
        DECLARATIONS + "start w[0 +: 8] -> a[0 +: 8] signals s\ncompute k(x: read a[0 +: 8])\nwait s rows=8\n}"
    )
    assert [execute(program, {}, seed) for seed in range(9)] == [execute(program, {}, seed) for seed in range(9)]
