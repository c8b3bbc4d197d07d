"""The challenging instances of minimalloc: each is packed into its capacity within a minute of one core."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from schedc.ir.allocate.exact import exact
from schedc.ir.allocate.greedy import greedy
from schedc.ir.allocate.problem import Item, Problem
from schedc.ir.allocate.validate import validate

DATA = Path(__file__).parent / "data" / "minimalloc"
INSTANCES = sorted(path.stem for path in DATA.glob("?.*.csv"))


def load(name: str) -> tuple[Problem, int]:
    with (DATA / f"{name}.csv").open() as file:
        items = tuple(
            Item(row["id"], ((int(row["lower"]), int(row["upper"])),), int(row["size"]), 1)
            for row in csv.DictReader(file)
        )
    return Problem(items), int(name.split(".")[1])


def test_all_eleven_are_here():
    assert [name[0] for name in INSTANCES] == list("ABCDEFGHIJK")


@pytest.mark.parametrize("name", ["input.12", *INSTANCES])
def test_an_instance_is_packed_into_its_capacity(name):
    problem, capacity = load(name)
    start = time.process_time()
    answer = exact(problem, capacity, 60.0, time.process_time)
    assert answer.kind == "fits"
    assert validate(problem, answer.addresses, capacity) == []
    assert time.process_time() - start < 60.0


@pytest.mark.parametrize("name", INSTANCES)
def test_greedy_needs_more_than_the_capacity(name):
    problem, capacity = load(name)
    addresses = greedy(problem)
    assert problem.height(addresses) > capacity
    assert validate(problem, addresses, problem.height(addresses)) == []


@pytest.mark.parametrize("name", INSTANCES)
def test_one_row_less_than_the_peak_is_refused_at_once(name):
    problem, _ = load(name)
    assert exact(problem, problem.peak()[0] - 1, 1.0).kind == "cannot-fit"
