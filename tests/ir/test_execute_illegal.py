"""Operations that mean nothing are faults of every run, never an exception and never another address."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from random_programs import programs

from schedc.ir.execute import execute, run, unfold
from schedc.ir.execute import unroll as unrolling
from schedc.ir.program import Program, SemaphoreRef, Signal
from schedc.ir.text_parse import parse_program

DECLARATIONS = """program p {
  devices 2
  pool work rows=24
  buffer a in work rows=8 slots=2 align=8 at 0
  hbm w rows=64 weight
  smem n[2] in 0..3 input
  smem m[2] in 0..9 local
  table kind = 0, 1
  semaphore s[2] dma
  semaphore g[1] regular
"""


def parse(body: str) -> Program:
    return parse_program(DECLARATIONS + body + "\n}")


OUT_OF_RANGE = {
    "compute k(o: write a<rank + 2>[0 +: 8])": "slot 2 of a, which has 2",
    "compute k(o: write a<0 - 1>[0 +: 8])": "slot -1 of a, which has 2",
    "compute k(o: write a[1 +: 8])": "rows 1..9 of a, which has 8",
    "compute k(x: read w[rank - 8 +: 8])": "rows -8..0 of w, which has 64",
    "compute k(x: read w<1>[0 +: 8])": "slot 1 of w, which has 1",
    "start w[60 +: 8] -> a[0 +: 8] signals s": "rows 60..68 of w, which has 64",
    "start w[0 +: 8] -> a[0 +: 8] signals s[2]": "s[2] of 2",
    "start w[0 +: 8] -> a[0 +: 4] signals s": "8 rows into 4",
    "wait s[0 - 1] rows=8": "s[-1] of 2",
    "remote.start w[0 +: 8] -> a<2>[0 +: 8] on rank ^ 1 sent s signals s[1]": "slot 2 of a, which has 2",
    "set m[0] = 10": "m[0] becomes 10, outside 0..9",
    "set m[0] = 0 - 1": "m[0] becomes -1, outside 0..9",
    "set m[2] = 0": "element 2 of m[2]",
    "set m[0 - 1] = 0": "element -1 of m[2]",
    "set m[0] = n[rank + 2]": "element 2 of n[2]",
    "set m[0] = kind[rank + 2]": "element 2 of kind[2]",
    "set m[0] = (rank - 1) // 2": "-1 // 2",
    "set m[0] = (rank - 1) % 2": "-1 % 2",
    "set m[0] = 1 // n[0]": "1 // 0",
    "set m[0] = 1 % n[0]": "1 % 0",
    "set m[0] = rank - 1 ^ 1": "-1 ^ 1",
    "compute k(o: write a[0 +: 8]) scalars(at=1 % n[1])": "1 % 0",
    "when 1 // n[0] == 0 {\n}": "1 // 0",
    "loop l < 1 // n[0] {\n}": "1 // 0",
}


@pytest.mark.parametrize("body", OUT_OF_RANGE)
def test_out_of_range(body):
    first = execute(parse(body), {}, 0)[0]
    operation = body.split("\n", 1)[0]
    assert (first.kind, first.step) == ("out-of-range", 0)
    assert first.detail == f"{OUT_OF_RANGE[body]}: {operation}"


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        ("signal g amount=1 on rank", "bad-peer", "device 0 of 2 addresses device 0"),
        ("signal g amount=1 on 2", "bad-peer", "device 0 of 2 addresses device 2"),
        ("remote.start w[0 +: 8] -> a[0 +: 8] on rank - 1 sent s signals s[1]", "bad-peer",
         "device 0 of 2 addresses device -1"),
        ("switch n[0] {\n  case 1 {\n  }\n}", "no-case", "there is no case 0"),
        ("set m[0] = m[1]", "never-written", "m[1] is not set"),
        ("set kind[0] = 1", "table-written", "kind"),
        ("compute k(o: write nowhere[0 +: 8])", "undeclared", "there is no storage nowhere"),
        ("set m[0] = l", "undeclared", "no loop counts l"),
    ],
)  # fmt: skip
def test_other_operations_that_mean_nothing(body, kind, detail):
    first = execute(parse(body), {}, 0)[0]
    operation = body.split("\n", 1)[0]
    assert (first.kind, first.detail) == (kind, f"{detail}: {operation}")


def test_the_fault_is_that_of_the_device_and_the_iteration_where_it_comes_first():
    body = "loop l < 3 {\ncompute k(o: write a<l>[0 +: 8])\n}"
    faults = execute(parse(body), {}, 0)
    assert [(fault.device, fault.step) for fault in faults] == [(0, 2), (1, 2)]
    assert faults[0].detail == "slot 2 of a, which has 2: compute k(o: write a<l>[0 +: 8]) with {'l': 2}"


def test_a_negative_amount_is_out_of_range():
    program = replace(parse(""), body=(Signal(SemaphoreRef("g"), -1),))
    assert {fault.kind for fault in execute(program, {}, 0)} == {"out-of-range"}


def test_a_counter_is_no_more_after_its_loop():
    assert execute(parse("loop l < 3 {\n}\nset m[0] = l"), {}, 0)[0].kind == "undeclared"


def test_an_inner_loop_may_use_the_name_of_an_outer_one():
    body = "loop l < 2 {\nloop l < 9 {\n}\ncompute k(o: write a<l>[0 +: 8])\n}"
    assert execute(parse(body), {}, 0) == []


def test_a_buffer_outside_its_pool():
    program = parse_program("program p {\npool work rows=8\nbuffer a in work rows=8 slots=2 align=8 at 0\n}")
    (fault,) = execute(program, {}, 0)
    assert (fault.kind, fault.detail) == ("out-of-range", "buffer a has rows 0..16 of pool work, which has 8")


@pytest.mark.parametrize(
    "body", ["loop l < 1000000000 {\n}", "loop l < 600 {\nloop j < 600 {\nsignal g amount=1\n}\n}"]
)
def test_a_program_that_is_too_long_is_a_fault(body, monkeypatch):
    monkeypatch.setattr(unrolling, "STEP_LIMIT", 2000)
    assert [(fault.kind, fault.device) for fault in execute(parse(body), {}, 0)] == [("too-long", 0)]


@pytest.mark.parametrize(("values", "message"), [([0], "n has 2 elements, not 1"), ([0, 4], "n is within 0..3, not 4")])
def test_inputs_that_break_their_declaration_are_the_callers_mistake(values, message):
    with pytest.raises(ValueError, match=message):
        execute(parse("barrier"), {"n": values}, 0)


@settings(max_examples=50, deadline=None)
@given(programs)
def test_no_program_raises(program):
    with patch.object(unrolling, "STEP_LIMIT", 100):
        trace = unfold(program, {})
        assert all(fault.detail for seed in (0, 1, 999) for fault in run(trace, seed))
