"""Tiles of a sequence on the devices of a group in turn: each lies on one of them, and every device knows its own."""

import pytest

from schedc.ir.expr import Const, Expr, Rank, evaluate, holds
from schedc.lower.caches.turns import Turns
from schedc.lower.collectives.group import Group

GROUPS = [Turns(4), Turns(4, Group(8, 4).index()), Turns(3, Group(6, 3).index()), Turns(2, Group(32, 2).index())]
MEMBERS = [range(4), range(4, 8), range(3, 6), range(30, 32)]
CASES = list(zip(GROUPS, MEMBERS, strict=True))


def value(expr: Expr, device: int) -> int:
    return evaluate(expr, {}.__getitem__, None, device)


@pytest.mark.parametrize(("turns", "members"), CASES)
@pytest.mark.parametrize("tile", range(13))
def test_one_device_of_a_group_has_a_tile(turns: Turns, members: range, tile: int) -> None:
    at = Const(tile)
    having = [device for device in members if all(holds(each, None, None, device) for each in turns.held(at))]
    assert (
        having == [device for device in members if value(turns.has(at), device) == 1] == [members[tile % len(members)]]
    )
    assert value(turns.tile(turns.place(at)), having[0]) == tile


@pytest.mark.parametrize(("turns", "members"), CASES)
@pytest.mark.parametrize("tile", range(13))
def test_the_tiles_before_one_are_those_of_all_devices_together(turns: Turns, members: range, tile: int) -> None:
    before = {device: value(turns.before(Const(tile)), device) for device in members}
    mine = {device: [t for t in range(tile) if value(turns.has(Const(t)), device)] for device in members}
    assert before == {device: len(tiles) for device, tiles in mine.items()}
    for device, tiles in mine.items():
        assert [value(turns.tile(Const(place)), device) for place in range(len(tiles))] == tiles


def test_devices_that_have_all_tiles_name_no_rank() -> None:
    tile = Const(5)
    assert (Turns().place(tile), Turns().tile(tile), Turns().before(tile), Turns().held(tile)) == (tile, tile, tile, ())
    assert Turns(4).own == Turns(4, Group(4, 4).index()).own == Rank()
