"""Tiles of a cache that devices have in turn, as many as are in sight: the proof against every position there is."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest
from in_full import LIMITS
from random_windows import Windows, chunk, random_windows, window

from schedc.ir.execute import run, unfold
from schedc.ir.program import Program
from schedc.ir.text_parse import parse_program
from schedc.ir.verify import verify

MOST = 40
"""Positions, or pairs of them, of one program that are executed."""


def fault(program: Program, seed: int) -> str:
    """The first fault at any position, in words; empty if there is none."""
    position = next(scalars for scalars in program.scalars if scalars.name == "position")
    choices = list(product(range(position.high + 1), repeat=position.length))
    if len(choices) > MOST:
        choices = [*Random(seed).sample(choices, MOST), choices[-1]]
    for number, positions in enumerate(reversed(choices)):
        active = [int(number % 7 != r + 1) for r in range(position.length)]
        trace = unfold(program, {"position": list(positions), "active": active})
        for timing in range(3):
            if faults := run(trace, timing):
                return str(faults[0])
    return ""


def judged(first: int, count: int) -> Counter[tuple[bool, bool]]:
    """How many are (unsafe, refused). Fails where an unsafe one is proven."""
    found: Counter[tuple[bool, bool]] = Counter()
    for seed in range(first, first + count):
        text = random_windows(seed)
        program = parse_program(text)
        verdict, wrong = verify(program, LIMITS), fault(program, seed)
        assert not (wrong and verdict.proven), f"seed {seed} goes wrong and is accepted: {wrong}\n{text}"
        found[bool(wrong), not verdict.proven] += 1
    return found


@pytest.mark.parametrize("sequences", [1, 2, 4])
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize(
    "sight", [window(512, 512), window(512, 1500), chunk(512, 4)], ids=["one tile", "three tiles", "chunk"]
)
def test_tiles_in_sight_are_as_many_whatever_the_context(sight: str, devices: int, sequences: int) -> None:
    """A difference of quotients is bounded although both grow, so no trip beyond those there can be is looked at."""
    short, long = (
        verify(parse_program(Windows(devices, sequences, 512, tiles, sight).text()), LIMITS) for tiles in (4, 64)
    )
    assert short.proven and long.proven
    assert long.statistics.operations == short.statistics.operations


def test_no_unsafe_program_is_proven() -> None:
    found = judged(0, 60)
    assert found[True, True] > 15
    assert found[False, False] > 15
    assert not found[False, True], "refused, although it goes wrong nowhere"


@pytest.mark.parametrize(
    "count", [pytest.param(300, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.long)]
)
def test_no_unsafe_program_is_proven_at_length(count: int) -> None:
    judged(10_000, count)
