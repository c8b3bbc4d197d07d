"""The default choice of an algorithm, by the chip's figures."""

from __future__ import annotations

import pytest

from schedc.lower.collectives.choose import buffer_rows, choose, microseconds
from schedc.lower.collectives.group import Group, topology_of
from schedc.lower.collectives.protocol import Exchanged, Kind
from schedc.lower.collectives.registry import ALGORITHMS, algorithms_for
from schedc.target.target import parse_target

TARGET = parse_target("tpu7x:2x2x4", 32)


def all_reduce(kib: int, devices: int, wire: str = "f32", kind: Kind = "all_reduce") -> Exchanged:
    return Exchanged("a", kind, Group(32, devices), topology_of(TARGET), 2 * kib, wire)  # type: ignore[arg-type]


def test_known_lines_are_those_that_were_published() -> None:
    """All-reduce flat 4.3 µs + 0.0205 µs/KiB, chip-hierarchical 7.45 + 0.0121; all-gather 3.1 + 0.055/KiB."""
    at = {
        "one_shot": 4.3 + 0.0205 * 128,
        "hierarchical": 7.45 + 0.0121 * 128,
    }
    for name, us in at.items():
        assert microseconds(ALGORITHMS[name], all_reduce(128, 8), TARGET.cost) == pytest.approx(us)
    gather = microseconds(ALGORITHMS["one_shot"], all_reduce(16, 8, kind="all_gather"), TARGET.cost)
    assert gather == pytest.approx(3.1 + 0.055 * 16)


def test_what_is_not_known_as_a_whole_follows_from_its_hops() -> None:
    """Two hops of 1/8 of the activations to the sibling and 6/8 over the links, 134 GB/s."""
    us = microseconds(ALGORITHMS["two_phase"], all_reduce(128, 8), TARGET.cost)
    assert us == pytest.approx(2.725 + 2 * (1.575 + 128 * 1024 * 6 / 8 / 134e3))
    pair = microseconds(ALGORITHMS["one_shot"], all_reduce(128, 2), TARGET.cost)
    assert pair == pytest.approx(2.725 + 1.575 + 128 * 1024 / 663e3)


@pytest.mark.parametrize(
    ("kib", "devices", "name"),
    [
        (8, 2, "one_shot"),
        (128, 8, "one_shot"),
        (448, 8, "two_phase"),
        (128, 32, "two_phase"),
        (4096, 32, "hierarchical"),
    ],
)
def test_the_more_bytes_and_devices_the_more_hops_pay(kib: int, devices: int, name: str) -> None:
    assert choose(all_reduce(kib, devices), TARGET.cost) == name


def test_half_the_bytes_on_the_wire_change_the_choice() -> None:
    assert choose(all_reduce(256, 8), TARGET.cost) == "two_phase"
    assert choose(all_reduce(256, 8, "bf16"), TARGET.cost) == "one_shot"


def test_what_takes_too_much_memory_is_left_out_and_the_smallest_is_what_remains() -> None:
    summed = all_reduce(128, 8)
    rows = {a.name: buffer_rows(a, summed) for a in algorithms_for("all_reduce")}
    assert choose(summed, TARGET.cost, rows["one_shot"]) == "one_shot"
    assert choose(summed, TARGET.cost, rows["one_shot"] - 1) != "one_shot"
    assert choose(summed, TARGET.cost, 1) == min(rows, key=lambda name: rows[name])


def test_every_kind_has_a_choice_on_every_chip() -> None:
    for name in ("tpu7x", "v5e", "v5p", "v6e"):
        target = parse_target(name)
        for kind, size in (("all_gather", 4), ("reduce_scatter", 4), ("exchange", 2)):
            shape = Exchanged("a", kind, Group(4, size), topology_of(target), 64, "bf16")  # type: ignore[arg-type]
            assert choose(shape, target.cost) in ALGORITHMS
