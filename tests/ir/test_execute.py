"""The executor finds what bad timing does to a program of one device."""

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
        ("signal g amount=1\nawait g amount=1", set()),
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


def test_two_transfers_to_the_same_rows_may_end_in_either_order():
    body = """start w[0 +: 8] -> a[0 +: 8] signals s
    start w[8 +: 8] -> a[0 +: 8] signals s
    wait s rows=16
    compute k(x: read a[0 +: 8])"""
    assert faults(body) == {"wrong-read"}


@pytest.mark.parametrize(("row", "expected"), [(0, {"wrong-read"}), (7, {"wrong-read"}), (8, set())])
def test_no_row_of_a_source_may_change_under_way(row, expected):
    body = f"""compute k(o: write big[0 +: 16])
    start big[0 +: 8] -> a[0 +: 8] signals s
    compute k(o: write big[{row} +: 1])
    wait s rows=8
    compute k(x: read a[3 +: 2])"""
    assert faults("buffer big in other rows=16 slots=1 align=8\npool other rows=0\n" + body) == expected


def test_the_cuts_of_one_end_of_a_transfer_are_those_of_the_other():
    """The rows 3..8 of the source come through two transfers, although no access names them there."""
    body = """start w[0 +: 8] -> a[0 +: 8] signals s
    wait s rows=8
    start a[0 +: 8] -> b[0 +: 8] signals s
    wait s rows=8
    compute k(o: write b[0 +: 3])
    compute k(x: read b[3 +: 5])
    start b[0 +: 8] -> out[0 +: 8] signals s
    wait s rows=8"""
    assert faults(body) == set()


def test_a_wrong_read_names_the_row_and_what_it_holds():
    body = """compute zero(o: write b[0 +: 8])
    start b[0 +: 8] -> a[0 +: 8] signals s
    wait s rows=8
    loop l < 2 {
      compute k(o: write c[4 +: 2])
    }
    compute k(x: read b[0 +: 8])"""
    (fault,) = execute(parse_program(DECLARATIONS + body + "\n}"), {}, 0)
    assert (fault.kind, fault.step, fault.device) == ("wrong-read", 5, 0)
    assert fault.detail == "row 4 of b holds what step 4 wrote, not what step 0 wrote: compute k(x: read b[0 +: 8])"


def test_a_fault_in_a_loop_names_the_iteration():
    body = "loop l < 3 {\nloop j < 2 {\ncompute k(o: write a[0 +: 1])\n}\ncompute k(x: read b[0 +: 8])\n}"
    faults = execute(parse_program(DECLARATIONS + body + "\n}"), {}, 0)
    assert [fault.detail for fault in faults] == [
        f"row 0 of b: compute k(x: read b[0 +: 8]) with {{'l': {l}}}"
        for l in range(3)  # noqa: E741
    ]


def test_scalars_choose_trips_and_guards():
    program = parse_program(DECLARATIONS + "loop t < n[0] {\nwhen t == 2 {\ncompute k(x: read a[0 +: 8])\n}\n}\n}")
    assert [execute(program, {"n": [n]}, 0) == [] for n in (0, 2, 3)] == [True, True, False]


def test_what_a_computation_sets_differs_by_draw_and_device_and_stays_in_its_range():
    body = """smem m[3] in 2..5 local
    compute k() sets ids=m
    loop t < m[0] {
      loop i < m[1] {
        compute k(o: write a[m[2] +: 1])
      }
    }"""
    program = parse_program(DECLARATIONS.replace("{", "{\n  devices 2", 1) + body + "\n}")
    counts = {tuple(len(steps) - 1 for steps in unfold(program, {}, draw).steps) for draw in range(300)}
    assert {count for pair in counts for count in pair} == {a * b for a in range(2, 6) for b in range(2, 6)}
    assert any(first != second for first, second in counts)


def test_a_switch_over_a_table_runs_the_case_of_each_layer():
    body = """table kind = 0, 2, 0, 1
    loop l < 4 {
      switch kind[l] {
        case 0 {
          start w[l * 8 +: 8] -> a[0 +: 8] signals s
        }
        case 1 {
          compute k(x: read a[0 +: 8], o: write out[0 +: 8])
        }
        case 2 {
          wait s rows=8
        }
      }
      when l == 2 {
        wait s rows=8
      }
    }"""
    trace = unfold(parse_program(DECLARATIONS + body + "\n}"), {})
    assert [type(step).__name__ for step in trace.steps[0]] == ["Copy", "Take", "Copy", "Take", "Work"]
    assert {fault.kind for seed in range(30) for fault in run(trace, seed)} == set()


def test_the_same_seed_gives_the_same_run():
    program = parse_program(
        DECLARATIONS + "start w[0 +: 8] -> a[0 +: 8] signals s\ncompute k(x: read a[0 +: 8])\nwait s rows=8\n}"
    )
    runs = [[execute(program, {}, seed) for seed in range(30)] for _ in range(2)]
    assert runs[0] == runs[1]
    assert [] in runs[0]
    assert runs[0][0] != []
