"""Addresses: every packing is valid, the exact search finds what greedy misses, a refusal says what clashes."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from schedc.ir.allocate import DoesNotFit, allocate, fits
from schedc.ir.allocate.clash import clash_set
from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.share import first_packing, improved, share
from schedc.ir.allocate.validate import Cause, Violation, validate
from schedc.ir.errors import IrError
from schedc.ir.live import LiveRange, live_ranges
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, verify

spans = st.lists(st.integers(0, 16), min_size=2, max_size=6, unique=True).map(
    lambda times: tuple(zip(sorted(times)[::2], sorted(times)[1::2], strict=False))
)
problems = st.lists(st.tuples(spans, st.integers(1, 40), st.sampled_from([1, 8])), max_size=8).map(
    lambda rows: Problem(tuple(Item(f"b{i}", times, size, align) for i, (times, size, align) in enumerate(rows)))
)


def ring(*rows: tuple[str, int, int, int], period: int = 12) -> Problem:
    """Items of a loop: (name, first, end, rows) with end before first for one that the next iteration takes over."""
    return Problem(
        tuple(
            Item(name, ((first, end),) if first < end else ((0, end), (first, period)), size, 1)
            for name, first, end, size in rows
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
    assert validate(problem, answer.addresses, 9) == []


def test_a_buffer_of_two_spans_has_one_address_and_leaves_its_rows_free_in_between():
    """The ring of three steps: each buffer goes from one step to the next, the last one to the next iteration."""
    problem = ring(("a", 9, 2, 4), ("b", 1, 6, 4), ("c", 5, 10, 4))
    answer = exact(problem, 12, 1.0)
    assert validate(problem, answer.addresses, 12) == []
    assert problem.peak() == (8, 1)
    assert exact(problem, 8, 1.0).kind == "cannot-fit"
    assert improved(first_packing(problem), 1.0).bound == 16, "three that meet pairwise take 12 rows, two tiles of 8"
    halves = ring(("a", 9, 2, 4), ("b", 1, 6, 4), ("c", 5, 8, 4))
    assert exact(halves, 8, 1.0).kind == "fits"


def test_equal_items_are_no_obstacle_to_a_proof():
    """Twelve of 7 rows, all live at time 2, at even addresses: 8 rows for each but the highest."""
    items = [Item(f"b{i}", ((0, 1), (2, 3)) if i < 6 else ((2, 3), (4, 5)), 7, 2) for i in range(12)]
    problem = Problem(tuple(items))
    assert exact(problem, 12 * 8 - 1, 5.0).kind == "fits"
    answer = exact(problem, 12 * 8 - 2, 5.0)
    assert answer.kind == "cannot-fit"
    assert answer.nodes < 1000


def test_fixed_items_stay_and_the_others_go_around_them():
    items = (Item("f", ((2, 6),), 4, 2, fixed=4), Item("a", ((0, 4),), 4, 2), Item("b", ((3, 9),), 4, 2))
    problem = Problem(items)
    answer = exact(problem, 12, 1.0)
    assert answer.addresses["f"] == 4
    assert validate(problem, answer.addresses, 12) == []
    assert exact(problem, 11, 1.0).kind == "cannot-fit"


def test_fixed_items_that_overlap_cannot_fit():
    items = (Item("a", ((0, 4),), 8, 8, fixed=0), Item("b", ((3, 6),), 8, 1, fixed=7))
    assert exact(Problem(items), 100, 1.0).kind == "cannot-fit"


def hard(count: int) -> Problem:
    """Widths and sizes of no pattern, all times full."""
    rng = random.Random(count)
    items = []
    for lane in range(count):
        at = 0
        while at < 60:
            end = min(at + rng.randint(5, 25), 60)
            items.append(Item(f"b{lane}.{at}", ((at, end),), rng.randint(5, 30), 1))
            at = end
    return Problem(tuple(items))


def test_an_answer_that_takes_too_long_is_not_found():
    problem = hard(30)
    answer = exact(problem, problem.peak()[0], 0.0)
    assert answer.kind == "not-found"
    assert answer.nodes > 0


def test_pools_share_the_capacity():
    """One pool needs 16 rows and the other 8."""
    wide = Problem((Item("a", ((0, 4),), 8), Item("b", ((2, 6),), 8)))
    narrow = Problem((Item("c", ((0, 4),), 8), Item("d", ((4, 6),), 8)))
    problems = {"v": wide, "w": narrow}
    assert [share(problems, rows, 1.0).kind for rows in (24, 23, 32)] == ["fits", "cannot-fit", "fits"]


def test_a_clash_without_a_peak_is_found_by_leaving_out_what_is_not_needed():
    """Three that meet pairwise, never all at once, beside others that are in nobody's way."""
    problem = ring(("a", 9, 2, 8), ("b", 1, 6, 8), ("c", 5, 10, 8), ("x", 3, 4, 8), ("y", 7, 8, 8))
    assert problem.peak()[0] == 16
    assert share({"v": problem}, 16, 1.0).kind == "cannot-fit"
    found = clash_set({"v": problem}, 16, True, 5.0)
    assert sorted(item.name for _, item in found.members) == ["a", "b", "c"]
    assert found.proven and found.irreducible


@settings(max_examples=100, deadline=None)
@given(problems, problems)
def test_a_clash_set_cannot_be_packed_and_can_without_any_one(one, two):
    pools = {"v": one, "w": Problem(tuple(replace(item, name=f"w{item.name}") for item in two.items))}
    least = sum(improved(first_packing(problem), 5.0).rows for problem in pools.values())
    capacity = least * 2 // 3
    shared = share(pools, capacity, 5.0)
    if shared.kind == "fits":
        return
    assert shared.kind == "cannot-fit"
    found = clash_set(pools, capacity, True, 30.0)
    assert found.proven and found.irreducible

    def kind(members):
        of = {pool: Problem(tuple(item for name, item in members if name == pool)) for pool in pools}
        return share(of, capacity, 5.0).kind

    assert kind(found.members) == "cannot-fit"
    for left_out in found.members:
        assert kind([member for member in found.members if member is not left_out]) == "fits"


@pytest.mark.parametrize(
    ("addresses", "violations"),
    [
        ({"a": 0, "b": 8}, []),
        ({"a": 0}, [Violation(Cause.MISSING, "b")]),
        ({"a": -8, "b": 8}, [Violation(Cause.NEGATIVE, "a")]),
        ({"a": 0, "b": 12}, [Violation(Cause.TOO_HIGH, "b"), Violation(Cause.MISALIGNED, "b")]),
        ({"a": 0, "b": 0}, [Violation(Cause.OVERLAP, "a", "b")]),
        ({"a": 0, "b": 7}, [Violation(Cause.OVERLAP, "a", "b"), Violation(Cause.MISALIGNED, "b")]),
    ],
)
def test_the_validator_names_the_cause(addresses, violations):
    problem = Problem((Item("a", ((0, 4),), 8), Item("b", ((2, 6),), 8)))
    assert validate(problem, addresses, 16) == violations


def test_the_validator_looks_at_every_span():
    pair = Problem((Item("a", ((0, 2), (8, 9)), 8), Item("b", ((3, 5), (6, 9)), 8)))
    assert [str(violation) for violation in validate(pair, {"a": 0, "b": 0}, 16)] == [
        "a shares rows with another buffer that is live at the same time: b"
    ]
    apart = Problem((Item("a", ((0, 2), (8, 9)), 8), Item("b", ((3, 5), (6, 8)), 8)))
    assert validate(apart, {"a": 0, "b": 0}, 16) == []


def test_a_moved_fixed_buffer_is_a_violation():
    assert validate(Problem((Item("a", ((0, 1),), 8, 8, fixed=8),)), {"a": 0}, 16) == [Violation(Cause.MOVED, "a")]


PAIRWISE = """
program pairwise {
  pool v rows=0
  buffer a in v rows=8 slots=1 align=8
  buffer b in v rows=8 slots=1 align=8
  buffer c in v rows=8 slots=1 align=8
  compute k(o: write a[0 +: 8])
  loop l < 4 {
    compute k(x: read a[0 +: 8], o: write b[0 +: 8])
    compute k(x: read b[0 +: 8], o: write c[0 +: 8])
    compute k(x: read c[0 +: 8], o: write a[0 +: 8])
  }
}
"""


def test_buffers_that_hand_on_in_a_circle_meet_pairwise_but_never_all_at_once():
    program = parse_program(PAIRWISE)
    assert not fits(program, 16) and fits(program, 24)
    with pytest.raises(DoesNotFit) as error:
        allocate(program, 16)
    assert str(error.value) == (
        "4096 bytes too many for the 8192 bytes of the pools: every packing takes 12288 bytes or more; the smallest "
        "set that cannot be packed together, fullest at `compute k(x: read a[0 +: 8], o: write b[0 +: 8])`, "
        "is a (4096), b (4096), c (4096)"
    )
    assert error.value.proven and error.value.irreducible


def test_addresses_that_cannot_be_kept_are_named():
    text = PAIRWISE.replace("b in v rows=8 slots=1 align=8", "b in v rows=8 slots=1 align=8 at 0")
    kept = allocate(parse_program(text), 64)
    assert kept.buffer("b").address == 0
    with pytest.raises(IrError, match=r"pool v cannot be kept: a shares rows with another buffer .*: b"):
        allocate(parse_program(text.replace("a in v rows=8 slots=1 align=8", "a in v rows=8 slots=1 align=8 at 0")), 64)


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


def test_without_numba_the_search_runs_as_it_is():
    code = (
        "import sys; sys.modules['numba'] = None; "
        "from schedc.ir.allocate.exact import exact; from schedc.ir.allocate.problem import Item, Problem; "
        "items = tuple(Item(str(i), ((i, i + 3),), 4 + i % 3, 2) for i in range(8)); "
        "print(exact(Problem(items), 16, 5.0).kind, exact(Problem(items), 14, 5.0).kind)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["fits", "cannot-fit"]


def test_numba_is_imported_only_for_a_search():
    code = (
        "import sys, schedc.cli.main; from schedc.ir.allocate import allocate; "
        "from schedc.ir.text_parse import parse_program; import pathlib; "
        "allocate(parse_program(pathlib.Path(sys.argv[1]).read_text()), 64); assert 'numba' not in sys.modules"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".ir") as file:
        file.write(PHASES)
        file.flush()
        subprocess.run([sys.executable, "-c", code, file.name], check=True)
