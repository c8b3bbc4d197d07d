"""How often a step executes what: scalars are set as the core sets them."""

from schedc.cost.executions import executions, trips_about
from schedc.ir.program import Compute, walk
from schedc.ir.text_parse import parse_program

PROGRAM = """\
program p {
  pool work
  buffer a in work rows=8
  smem position[4] in 0..7 input
  smem deepest[1] in 0..7 local
  set deepest[0] = 0
  loop row < 4 unroll {
    set deepest[0] = max(deepest[0], position[row])
  }
  when 9 < deepest[0] {
    set deepest[0] = 0
  }
  loop tile < deepest[0] {
    compute zero(out: write a[0 +: 8])
  }
}
"""


def counts(position: list[int], copies: bool) -> dict[str, int]:
    program = parse_program(PROGRAM)
    found = zip(walk(program.body), executions(program, {"position": position}, copies=copies), strict=True)
    return {type(op).__name__ if not isinstance(op, Compute) else op.kind: count for op, count in found}


def test_a_loop_runs_as_often_as_the_scalar_says_that_every_copy_of_an_unrolled_loop_has_set() -> None:
    assert counts([1, 2, 5, 3], copies=False)["zero"] == 5
    assert counts([1, 2, 5, 3], copies=True)["zero"] == 5
    assert counts([0, 0, 0, 0], copies=False)["zero"] == 0


def test_trips_are_told_without_going_through_them() -> None:
    program = parse_program(
        "program p {\n  pool work\n  buffer a in work rows=8\n  loop i < 1000000 {\n    loop j < i + 1 {\n"
        "      loop k < 5 - j {\n        compute zero(out: write a[0 +: 8])\n      }\n    }\n  }\n}\n"
    )
    assert trips_about(program) == 1_000_000 * (1 + 1_000_000 * (1 + 5))
