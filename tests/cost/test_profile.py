"""Profiles: a program's own cycles, other orders of the same operations, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from machines import round_machine

from schedc.cost.profile import Profile, merged, profile_of, read_profile
from schedc.cost.signature import signatures
from schedc.cost.simulate import simulate
from schedc.errors import UserError
from schedc.ir.program import Program, walk
from schedc.ir.text_parse import parse_program

DECLARED = """
program two {
  pool work rows=16
  buffer a in work rows=8 slots=1 align=8 at 0
  buffer b in work rows=8 slots=1 align=8 at 8
  hbm w rows=8 weight
  semaphore arrived[1] dma
"""
START = "  start w[0 +: 8] -> a[0 +: 8] signals arrived"
WAIT = "  wait arrived rows=8"
ZERO = "  compute zero(out: write b[0 +: 8])"
MOVE = "  compute move(x: read a[0 +: 8], out: write b[0 +: 8])"
LOOP = f"  loop i < 3 {{\n  {ZERO}\n  }}"
VERSIONS = {"jax": "1", "jaxlib": "1", "libtpu": "2"}


def program(*lines: str) -> Program:
    return parse_program("\n".join([DECLARED, *lines, "}"]))


def profile(made: Program, *cycles: float, chip: str = "tpu7x") -> Profile:
    return profile_of(made, chip, VERSIONS, cycles, "abc")


def test_a_program_is_charged_with_its_own_cycles_at_any_clock() -> None:
    """7 for the start, which arrives 100 + 20 + 80 later; 3 for the wait, 40 and 60 for the computations."""
    own = program(START, ZERO, WAIT, MOVE)
    machine = replace(round_machine(), pricing=profile(own, 7, 40, 3, 60))
    timeline = simulate(own, machine)
    assert timeline.step_ns == 7 + 200 + 60
    assert timeline.cycles == 7 + 40 + 3 + 60
    assert timeline.priced_by == "the compiler's cycles (jax 1, libtpu 2)"
    assert timeline.notes == ()
    assert simulate(own, replace(machine, clock_ghz=2.0)).step_ns == 3.5 + 200 + 30


def test_places_of_one_signature_have_their_own_cycles_in_their_own_order_and_the_mean_in_another() -> None:
    first = program(ZERO, ZERO, START, WAIT)
    known = profile(first, 30, 50, 0, 0)
    assert known.priced(first, round_machine().table).cycles == (30, 50, 0, 0)
    other = program(START, ZERO, WAIT, ZERO)
    priced = known.priced(other, round_machine().table)
    assert priced.cycles == (0, 40, 0, 40)
    assert priced.source == "the compiler's cycles (jax 1, libtpu 2), by signature"


def test_the_mean_of_a_signature_is_over_what_a_step_executes() -> None:
    """Once outside of a loop and in each of its three trips."""
    known = profile(program(ZERO, LOOP), 10, 5, 50)
    zero = next(s for name, s in known.spreads.items() if name.startswith("zero"))
    assert (zero.mean, zero.least, zero.most, zero.places) == ((10 + 3 * 50) / 4, 10, 50, 2)


def test_what_a_profile_does_not_know_is_priced_by_the_table_and_counted() -> None:
    known = profile(program(MOVE), 60)
    priced = known.priced(program(MOVE, ZERO, ZERO), round_machine().table)
    assert priced.cycles == (60, 50, 50)
    assert priced.notes == ("2 of 3 computations are not in the profile of two: priced by the table",)
    assert "1 of 3 computations; the rest by the table" in priced.source


def test_the_edge_of_a_loop_goes_with_the_computation_that_drains_there() -> None:
    """The table counts the drain to the computation, so an edge of the profile would count it twice."""
    known = profile(program(MOVE, LOOP), 60, 200, 45)
    bare = replace(known, spreads={n: s for n, s in known.spreads.items() if not n.startswith("zero")})
    other = program(LOOP, MOVE)
    assert known.priced(other, round_machine().table).cycles == (200, 45, 60)
    assert bare.priced(other, round_machine().table).cycles == (2, 50, 60)


def test_a_signature_has_the_attributes_and_the_shapes_but_no_address() -> None:
    ops = [
        "  compute zero(out: write a[0 +: 8])",
        "  compute zero(out: write b[0 +: 4])",
        "  compute zero(out: write b[0 +: 8]) {fast=true}",
    ]
    first, *others = signatures(program(ZERO, *ops))
    assert first == "zero (out:write:8)"
    assert others == ["zero (out:write:8)", "zero (out:write:4)", "zero fast=True (out:write:8)"]


def test_a_profile_of_another_chip_or_of_other_operations_is_refused() -> None:
    with pytest.raises(UserError, match="the profile of two is for v9, the program for tpu7x"):
        profile(program(ZERO), 1, chip="v9").priced(program(ZERO), round_machine().table)
    with pytest.raises(UserError, match="knows none of the 1 computations of two"):
        profile(program(ZERO), 1).priced(program(MOVE), round_machine().table)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_file_gives_the_same_profile_back(tmp_path: Path, suffix: str) -> None:
    known = profile(program(START, ZERO, WAIT, LOOP), 1.5, 2, 3, 4, 5)
    path = tmp_path / f"mine.{suffix}"
    known.write(path)
    assert read_profile(str(path)) == known


def test_profiles_become_one_table_of_the_same_compiler_alone() -> None:
    first, second = profile(program(ZERO, MOVE), 10, 1), profile(program(ZERO, ZERO), 40, 40)
    table = merged([first, second], "both")
    assert [spread.mean for spread in table.spreads.values()] == [1, 30]
    assert table.priced(program(MOVE, ZERO), round_machine().table).cycles == (1, 30)
    with pytest.raises(UserError, match="2 chips or compilers"):
        merged([first, replace(second, versions={**VERSIONS, "jax": "3"})], "both")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycles": [1.0, 2.0]}, "has 1 operations and cycles of 2"),
        ({"chips": "tpu7x"}, r"(?s)is no profile:.*chips"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(profile(program(ZERO), 1).to_file() | change))
    with pytest.raises(UserError, match=message):
        read_profile(str(path))


def test_a_name_of_nothing_is_refused_with_what_is_shipped() -> None:
    with pytest.raises(UserError, match="no table of cycles of that name is shipped"):
        read_profile("nothing")


def test_copies_that_stand_side_by_side_have_a_signature_of_their_own() -> None:
    """They overlap; what is in a loop of the kernel does not, even inside of one that is unrolled."""
    unrolled = program("  loop i < 4 unroll {", f"  {ZERO}", "  loop j < 2 {", f"  {ZERO}", "  }", "  }")
    assert signatures(unrolled) == (
        "unrolled",
        "zero (out:write:8) unrolled=4",
        "loop ending in zero (out:write:8) unrolled=4",
        "zero (out:write:8)",
    )


def test_an_edge_that_is_not_known_itself_is_that_of_loops_that_end_in_the_same_kind() -> None:
    small = ZERO.replace("+: 8", "+: 4")
    known = profile(program(small, MOVE, LOOP), 30, 60, 200, 45)
    other = program(f"  loop i < 3 {{\n  {small}\n  }}", f"  loop j < 3 {{\n  {MOVE}\n  }}")
    assert known.priced(other, round_machine().table).cycles == (200, 30, 2, 60)


def test_every_operation_has_a_signature_but_phases() -> None:
    made = program("  phase p {", ZERO, "  }")
    assert [bool(s) for s in signatures(made)] == [False, True]
    assert len(signatures(made)) == sum(1 for _ in walk(made.body))
