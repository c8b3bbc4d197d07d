"""What is left of the layers of rows that several buffers were written to in turn, each under a condition."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Limits, Verdict, verify
from schedc.ir.verify.contents import Layer, compact, visible
from schedc.ir.verify.linear import Atoms, Lin
from schedc.ir.verify.logic import MAYBE, Condition, Logic

MOST = 3
LIMITS = Limits(vmem_bytes=1 << 26, smem_bytes=1 << 20, semaphores=4096)
conditions = st.tuples(st.integers(0, 1), st.integers(1, MOST)).map(lambda c: Condition(">=", Lin(-c[1], ((c[0], 1),))))
guards = st.lists(conditions | st.just(MAYBE), max_size=2).map(tuple)
written = st.lists(st.builds(Layer, st.sampled_from("abc"), guards, st.integers(0, 2)), max_size=7)


def last_owner(layers, world, maybe):
    """`maybe` says of the operations whose layers have it whether it is so."""
    for layer in reversed(layers):
        known = [c for c in layer.guard if c != MAYBE]
        if maybe.get(layer.op, True) and all(world[c.value.terms[0][0]] + c.value.const >= 0 for c in known):
            return layer.owner
    return None


@given(written)
def test_whoever_wrote_last_is_still_the_last(layers):
    """In every world: two numbers in 0..3, and of each layer whether what is maybe so is so."""
    atoms = Atoms()
    for name in "nm":
        atoms.atom(name, 0, MOST, name)
    before = compact((layer._replace(op=i) for i, layer in enumerate(layers)), Logic(atoms))
    after = visible(before, Logic(atoms))
    unsure = [layer.op for layer in before if MAYBE in layer.guard]
    for world in product(range(MOST + 1), repeat=2):
        for truths in product((False, True), repeat=len(unsure)):
            maybe = dict(zip(unsure, truths, strict=True))
            assert last_owner(before, world, maybe) == last_owner(after, world, maybe)


TURNS = """
program turns {{
  pool work rows=64
  buffer x in work rows=8 slots=1 align=8 at 0
  buffer up in work rows=8 slots=1 align=8 at 8
  buffer down in work rows=16 slots=1 align=8 at 8
  buffer y in work rows=8 slots=1 align=8 at 24
  smem n[1] in 0..{most} input
  compute zero(out: write x[0 +: 8])
  compute zero(out: write y[0 +: 8])
  loop e < n[0] {{
    compute first(x: read x[0 +: 8], out: write up[0 +: 8])
    compute add(x: read up[0 +: 8], y: update y[0 +: 8])
    compute second(x: read y[0 +: 8], out: write down[0 +: 16])
    {then}
  }}
  {after}
}}
"""
ADD = "compute add(x: read down[0 +: 8], y: update y[0 +: 8])"


def turns(most: int, then: str = ADD, after: str = "") -> Verdict:
    return verify(parse_program(TURNS.format(most=most, then=then, after=after)), LIMITS)


def test_a_loop_whose_buffers_take_turns_in_the_same_rows_is_proven_by_induction():
    short, long = turns(40), turns(4000)
    assert short.proven and long.proven
    assert long.statistics.operations == short.statistics.operations


UP = ADD.replace("down", "up")


@pytest.mark.parametrize("most", [12, 40])
@pytest.mark.parametrize(
    ("then", "after", "rules"),
    [
        (UP, "", ["clobbered"]),
        (ADD, UP, ["clobbered"]),
        (ADD, f"when n[0] > 0 {{\n{UP}\n}}", ["clobbered"]),
        (ADD, ADD, ["guard-mismatch"]),
        (ADD, f"when n[0] > 0 {{\n{ADD}\n}}", []),
        (ADD, f"when n[0] > 9 {{\n{ADD}\n}}", []),
    ],
)
def test_the_last_of_them_alone_may_be_read_and_only_if_there_was_an_iteration(most, then, after, rules):
    found = turns(most, then, after)
    assert [refusal.rule for refusal in found.refusals] == rules
    assert found.statistics.skipped_iterations >= most - 3
