"""Addresses: every packing is valid, the exact search finds what greedy misses, a refusal says what clashes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from schedc.ir.allocate import DoesNotFit, allocate
from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.validate import Cause, Violation, validate
from schedc.ir.live import LiveRange, live_ranges
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

spans = st.tuples(st.integers(0, 12), st.integers(1, 8))
problems = st.lists(st.tuples(spans, st.integers(1, 40), st.sampled_from([1, 8])), max_size=8).map(
    lambda rows: Problem(
        tuple(Item(f"b{i}", ((at, at + long),), size, align) for i, ((at, long), size, align) in enumerate(rows))
    )
)


@settings(max_examples=300, deadline=None)
@given(problems)
def test_greedy_packings_are_valid(problem):
    packing = greedy(problem)
    assert validate(problem, packing, problem.height(packing)) == []


@settings(max_examples=150, deadline=None)
@given(problems)
def test_exact_is_never_worse_than_greedy_and_its_packings_are_valid(problem):
    height = problem.height(greedy(problem))
    answer = exact(problem, height, 5.0)
    assert answer.kind == "fits"
    assert validate(problem, answer.addresses, height) == []
    below = problem.peak()[0] - 1
    assert below < 0 or exact(problem, below, 5.0).kind == "cannot-fit"


def test_exact_finds_a_packing_that_greedy_misses():
    """Greedy needs 10 rows for a peak of 9.

    row 6..8 |         b b b b
        3..6 | d d d . c .        (d is 3..6, c is 3..5)
        0..3 | . a a a a e e e    (a is 0..2, e is 0..3)
    """
    rows = [("a", 1, 5, 3), ("b", 4, 8, 3), ("c", 4, 5, 3), ("d", 0, 3, 4), ("e", 5, 8, 4)]
    problem = Problem(tuple(Item(name, ((lower, upper),), size, 1) for name, lower, upper, size in rows))
    assert (problem.height(greedy(problem)), problem.peak()) == (10, (9, 4))
    answer = exact(problem, 9, 1.0)
    assert answer.addresses == {"a": 0, "b": 6, "c": 3, "d": 3, "e": 0}
    assert validate(problem, answer.addresses, 9) == []


@pytest.mark.parametrize(
    ("addresses", "violations"),
    [
        ({"a": 0, "b": 8}, []),
        ({"a": 0}, [Violation(Cause.MISSING, "b")]),
        ({"a": -8, "b": 8}, [Violation(Cause.NEGATIVE, "a")]),
        ({"a": 0, "b": 12}, [Violation(Cause.TOO_HIGH, "b"), Violation(Cause.MISALIGNED, "b")]),
        ({"a": 0, "b": 0}, [Violation(Cause.OVERLAP, "a", "b")]),
    ],
)
def test_the_validator_names_the_cause(addresses, violations):
    problem = Problem((Item("a", ((0, 4),), 8), Item("b", ((2, 6),), 8)))
    assert validate(problem, addresses, 16) == violations


def test_a_moved_fixed_buffer_is_a_violation():
    assert validate(Problem((Item("a", ((0, 1),), 8, 8, fixed=8),)), {"a": 0}, 16) == [Violation(Cause.MOVED, "a")]


def unplaced(text: str) -> Program:
    program = parse_program(text)
    return replace(
        program,
        pools=tuple(replace(pool, rows=0) for pool in program.pools),
        buffers=tuple(replace(buffer, address=None) for buffer in program.buffers),
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_an_allocated_program_is_proven(name):
    program = allocate(unplaced(SAMPLES[name]), 4096)
    assert verify(program, Limits(vmem_bytes=1 << 21, smem_bytes=4096, semaphores=64)).proven


PHASES = """
program phases {
  pool v rows=0
  buffer a in v rows=16 slots=1 align=8
  buffer b in v rows=8 slots=1 align=8
  buffer c in v rows=16 slots=1 align=8
  buffer d in v rows=8 slots=2 align=8
  hbm w rows=64 weight
  semaphore s[2] dma
  loop l < 4 {
    start w[0 +: 16] -> a[0 +: 16] signals s
    wait s rows=16
    compute one(x: read a[0 +: 16], out: write b[0 +: 8])
    compute two(x: read b[0 +: 8], out: write c[0 +: 16])
    compute three(x: read c[0 +: 16], out: write d<l % 2>[0 +: 8])
  }
}
"""


def test_live_ranges_go_from_the_first_write_to_the_last_need():
    assert live_ranges(parse_program(PHASES)) == (
        LiveRange("a", ((1, 4),)),
        LiveRange("b", ((3, 5),)),
        LiveRange("c", ((4, 6),)),
        LiveRange("d", ((5, 6),)),
    )


def test_a_buffer_that_the_next_iteration_reads_is_live_in_the_whole_loop():
    text = PHASES.replace("one(x: read a[0 +: 16], ", "one(x: read a[0 +: 16], y: read d<(l + 1) % 2>[0 +: 8], ")
    assert live_ranges(parse_program(text))[3] == LiveRange("d", ((0, 6),))


def test_a_transfer_that_the_next_iteration_awaits_keeps_its_buffers():
    text = PHASES.replace("    start w[0 +: 16]", "    wait s[1] rows=8\n    start w[0 +: 16]", 1).replace(
        "  }\n}", "    start b[0 +: 8] -> w[0 +: 8] signals s[1]\n  }\n}"
    )
    assert live_ranges(parse_program(text))[1] == LiveRange("b", ((0, 8),))


def test_parts_that_together_cover_a_read_define_it_from_the_start_of_their_loop():
    text = PHASES.replace(
        "    compute one(x: read a[0 +: 16], out: write b[0 +: 8])\n",
        "    loop p < 2 {\n      compute one(x: read a[0 +: 16], out: write b[p * 4 +: 4])\n    }\n",
    )
    assert live_ranges(parse_program(text))[1] == LiveRange("b", ((3, 6),))


def test_phases_share_rows():
    program = allocate(parse_program(PHASES), 64)
    assert [(pool.name, pool.rows) for pool in program.pools] == [("v", 32)]
    assert {buffer.name: buffer.address for buffer in program.buffers} == {"a": 0, "b": 16, "c": 0, "d": 16}


def test_what_does_not_fit_names_the_clash_the_place_and_the_bytes():
    with pytest.raises(DoesNotFit) as error:
        allocate(parse_program(PHASES), 16)
    assert str(error.value) == (
        "8192 bytes too many for the 8192 bytes of the pools: 16384 bytes are live at "
        "`compute three(x: read c[0 +: 16], out: write d<l % 2>[0 +: 8])`; "
        "the smallest set that cannot be there together is c (8192), d (8192)"
    )
    assert error.value.proven
