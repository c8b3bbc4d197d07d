"""One mutant of every kind, as its text differs from that of the program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.ir.mutation.differences import difference
from tests.ir.mutation.programs import WRITTEN, program
from tests.ir.mutation.registry import KINDS

GOLDEN = Path(__file__).parent / "mutation" / "examples.txt"


def example(name: str) -> list[str]:
    kind, rng = KINDS[name], random.Random(name)
    for written in WRITTEN * 5:
        mutant = kind(program(written), rng)
        if mutant is not None and mutant != program(written):
            return [f"## {name}, in {written}: {kind.__doc__}", *difference(program(written), mutant), ""]
    raise AssertionError(f"nothing to put {name} into")


def test_an_example_of_every_kind(request: pytest.FixtureRequest) -> None:
    text = "\n".join(line for name in sorted(KINDS) for line in example(name))
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "the examples have changed; if they should have: pytest --update-golden"
