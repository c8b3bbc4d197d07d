"""A device is proven by what another one was proven on if and only if its rows are those under other numbers."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_full import LIMITS, in_full, judge
from random_gathers import random_gathers
from random_turns import random_turns

from schedc.ir.text_parse import parse_program
from schedc.ir.verify import Verdict, verify
from schedc.ir.verify.devices.renaming import renames

ROWS = 6
sets = st.integers(1, ROWS).flatmap(
    lambda rows: st.tuples(st.integers(0, ROWS - rows), st.integers(0, ROWS - rows), st.just(rows))
)
ranges = st.tuples(st.integers(0, ROWS - 1), st.integers(1, 2)).map(lambda k: (k[0], min(k[0] + k[1], ROWS)))


@given(st.lists(sets, max_size=5), st.lists(ranges, max_size=2))
def test_rows_are_renamed_exactly_if_some_permutation_maps_every_set(found, kept):
    def maps(to: tuple[int, ...]) -> bool:
        return all(
            {to[row] for row in range(mine, mine + rows)} == set(range(theirs, theirs + rows))
            for mine, theirs, rows in found
        ) and all(to[row] == row for low, high in kept for row in range(low, high))

    assert renames(found, kept) == any(map(maps, permutations(range(ROWS))))


GATHER = """
program gather {{
  devices 4
  pool work rows=128
  buffer x in work rows=32 slots=2 align=8 at 0
  buffer y in work rows=32 slots=1 align=8 at 64
  hbm pages rows=64 state
  smem pos[1] in 0..3 input
  table place = {place}
  semaphore sent[2] dma
  semaphore arrived[2] dma
  semaphore read[1] dma
  barrier
  compute zero(out: write y[0 +: 32])
  loop l < 6 {{
    compute part(y: read y[0 +: 32], out: write x<l % 2>[rank * 8 +: 8]) scalars(at={number})
    loop p < 3 {{
      remote.start x<l % 2>[rank * 8 +: 8] -> x<l % 2>[rank * 8 +: 8] on {peer} sent sent[l % 2] signals arrived[l % 2]
    }}
    wait arrived[l % 2] rows=24
    wait sent[l % 2] rows=24
    compute join(x: read x<l % 2>[0 +: 32], y: update y[0 +: 32])
    start pages[{page} +: 8] -> y[24 +: 8] signals read
    compute mark(y: write y[place[rank] +: 8])
    wait read rows=8
  }}
}}
"""


def gather(place: str = "0, 8, 16, 8", peer: str = "rank ^ p + 1", number: str = "rank", page: str = "0") -> str:
    return GATHER.format(place=place, peer=peer, number=number, page=page)


def executed(verdict: Verdict) -> int:
    return verdict.statistics.operations


def proven(text: str) -> Verdict:
    verdict = verify(parse_program(text), LIMITS)
    assert verdict.proven, verdict
    return verdict


@pytest.mark.parametrize("peer", ["rank ^ p + 1", "(rank + p + 1) % 4"])
def test_devices_that_gather_from_all_others_are_proven_by_one(peer, monkeypatch):
    text = gather("0, 0, 0, 0", peer)
    assert executed(in_full(parse_program(text), monkeypatch)) == 4 * executed(proven(text))


def test_rows_that_overlap_others_on_one_device_only_are_found_there():
    (refusal,) = verify(parse_program(gather("0, 8, 16, 24")), LIMITS).refusals
    assert refusal.rule == "write-while-arriving"
    assert refusal.place is not None
    assert refusal.place.device == 3


def test_rows_that_are_in_other_sets_on_a_device_are_proven_by_themselves():
    """Where some of them are read too, to mark the rows that are is not to mark others."""
    once = executed(proven(gather("0, 0, 0, 0")))
    assert executed(proven(gather("0, 8, 16, 8"))) == once
    look = "compute look(y: read y[0 +: 8])"
    assert executed(proven(gather("0, 0, 0, 0").replace("compute join", f"{look}\n    compute join"))) < 2 * once
    assert executed(proven(gather("0, 8, 16, 8").replace("compute join", f"{look}\n    compute join"))) > 2 * once


def test_rows_that_scalars_decide_have_to_be_the_same_on_all_devices():
    assert executed(proven(gather("0, 0, 0, 0", page="pos[0] * 8"))) == executed(proven(gather("0, 0, 0, 0")))
    moved = proven(gather("0, 0, 0, 0", page="pos[0] * 8 + rank * 8"))
    assert executed(moved) > executed(proven(gather("0, 0, 0, 0")))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"place": "0, 8, 16, 32"}, "out-of-range"),
        ({"place": "0, 8, 16, 12"}, "misaligned"),
        ({"number": "(2 - rank) % 3"}, "bad-division"),
        ({"number": "place[rank + 1]"}, "out-of-range"),
        ({"number": "rank - 1 ^ 1"}, "bad-xor"),
        ({"page": "rank * 24"}, "out-of-range"),
    ],
)
def test_what_only_one_device_may_not_compute_is_refused_there(change, rule, monkeypatch):
    program = parse_program(gather(**change))
    verdict = verify(program, LIMITS)
    assert rule in {refusal.rule for refusal in verdict.refusals}
    assert [str(r) for r in verdict.refusals] == [str(r) for r in in_full(program, monkeypatch).refusals]


def test_a_condition_that_one_device_may_not_compute_is_refused_there():
    text = gather().replace("compute mark", "when (2 - rank) // 4 == 0 {\n    }\n    compute mark")
    verdict = verify(parse_program(text), LIMITS)
    assert {refusal.rule for refusal in verdict.refusals} == {"bad-division"}


EXCHANGES = """
program exchanges {{
  devices 4
  pool work rows=208
  buffer a in work rows=32 slots=1 align=8 at 0
  buffer b in work rows=64 slots=1 align=8 at 0
  buffer from_a in work rows=32 slots=1 align=8 at 64
  buffer from_b in work rows=48 slots=1 align=8 at 96
  buffer y in work rows=8 slots=1 align=8 at 144
  table place = {place}
  semaphore sent[2] dma
  semaphore arrived[2] dma
  barrier
  loop l < 6 {{
    compute pack(out: write a[0 +: 32])
    {early}
    loop p < 3 {{
      remote.start a[(rank ^ p + 1) * 8 +: 8] -> from_a[p * 8 +: 8] on rank ^ p + 1 sent sent signals arrived
    }}
    {during}
    wait arrived rows=24
    wait sent rows=24
    {late}
    compute total(blocks: read from_a[0 +: 24], own: read a[rank * 8 +: 8], out: write y[0 +: 8])
    compute pack(y: read y[0 +: 8], out: write b[0 +: 64])
    loop p < 3 {{
      remote.start b[(rank ^ p + 1) * 16 +: 16] -> from_b[p * 16 +: 16] on rank ^ p + 1 sent sent[1] signals arrived[1]
    }}
    wait arrived[1] rows=48
    compute total(blocks: read from_b[0 +: 48], own: read b[rank * 16 +: 16], out: write y[0 +: 8])
    wait sent[1] rows=48
  }}
}}
"""
MARK = "compute mark(out: write b[place[rank] +: 8])"


def exchanges(place: str = "32, 40, 48, 56", **parts: str) -> str:
    return EXCHANGES.format(**{"place": place, "early": "", "during": "", "late": ""} | parts)


def test_buffers_that_take_turns_in_the_same_rows_need_no_common_bijection(monkeypatch):
    """Blocks of 8 rows, then of 16: no bijection maps `a`'s to those of another device and `b`'s too."""
    program = parse_program(exchanges())
    assert executed(in_full(program, monkeypatch)) == 4 * executed(proven(exchanges()))


@pytest.mark.parametrize("when", ["during", "late"])
def test_buffers_that_are_in_use_together_need_one(when):
    assert executed(proven(exchanges(early=MARK))) > executed(proven(exchanges()))
    assert executed(proven(exchanges(**{when: MARK}))) > executed(proven(exchanges()))


@pytest.mark.parametrize(
    ("when", "place", "rule"),
    [
        ("during", "32, 40, 48, 16", "overwrite-while-read"),
        ("during", "32, 40, 48, 24", "clobbered"),
        ("late", "32, 40, 16, 56", "clobbered"),
    ],
)
def test_a_turn_that_meets_another_on_one_device_only_is_refused_there(when, place, rule, monkeypatch):
    program = parse_program(exchanges(place, **{when: MARK}))
    verdict = verify(program, LIMITS)
    assert rule in {refusal.rule for refusal in verdict.refusals}
    assert [str(r) for r in verdict.refusals] == [str(r) for r in in_full(program, monkeypatch).refusals]


def test_what_goes_wrong_on_one_device_is_refused_as_without_twins(monkeypatch):
    judged = judge(random_gathers, 0, 40, monkeypatch)
    assert judged[True, True] > 10
    assert judged[False, False] > 10


@pytest.mark.slow
def test_what_goes_wrong_on_one_device_is_refused_as_without_twins_at_length(monkeypatch):
    judge(random_gathers, 10_000, 400, monkeypatch)


def test_what_goes_wrong_between_turns_on_one_device_is_refused_as_without_twins(monkeypatch):
    judged = judge(random_turns, 0, 50, monkeypatch)
    assert judged[True, True] > 10
    assert judged[False, False] > 5


@pytest.mark.slow
def test_what_goes_wrong_between_turns_on_one_device_is_refused_as_without_twins_at_length(monkeypatch):
    judge(random_turns, 10_000, 400, monkeypatch)
