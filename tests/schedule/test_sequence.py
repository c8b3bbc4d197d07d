"""The law of a ring's order: `ahead` names the tile that many places further, once, wherever it lies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schedc.ir.expr import Const, Element, evaluate, holds
from schedc.ir.text_print import print_expr
from schedc.schedule.sequence import Affine, Lap, Sequence


@st.composite
def sequences(draw: st.DrawFn) -> Sequence:
    """Laps like those of a step: one trip before and after, loops between, some without tiles."""
    laps = []
    for index in range(draw(st.integers(1, 3))):
        streams = tuple((f"s{index}_{i}", draw(st.integers(1, 4))) for i in range(draw(st.integers(0, 3))))
        laps.append(Lap(f"l{index}", draw(st.integers(1, 5)), streams))
    return Sequence(tuple(laps))


def tiles(sequence: Sequence) -> list[tuple[int, str, int, int]]:
    """(lap, stream, trip, tile) of the whole step, written out."""
    return [
        (index, stream, trip, tile)
        for index, lap in enumerate(sequence.laps)
        for trip in range(lap.trips)
        for stream, count in lap.streams
        for tile in range(count)
    ]


@given(sequences(), st.integers(1, 9))
def test_ahead_names_the_tile_that_many_places_further_exactly_once(sequence: Sequence, distance: int) -> None:
    order = tiles(sequence)
    for number, (lap, stream, trip, tile) in enumerate(order):
        count = dict(sequence.laps[lap].streams)[stream]
        counters = {sequence.laps[lap].counter: trip, "tile": tile}
        at = Affine(0, (("tile", 1, count),)) if count > 1 else Affine()

        def value(expr, counters=counters):
            return evaluate(expr, counters.__getitem__, lambda array, index: 0)

        assert value(sequence.number(lap, stream, at).expr()) == number
        found = [
            (target.stream, value(target.trip), value(target.tile))
            for target in sequence.ahead(lap, stream, at, distance)
            if all(holds(c, counters.__getitem__, lambda array, index: 0) for c in target.conditions)
        ]
        assert found == [order[number + distance][1:]] if number + distance < len(order) else not found


@given(sequences(), st.integers(0, 12))
def test_first_names_the_beginning_of_the_step(sequence: Sequence, count: int) -> None:
    order = [(stream, trip, tile) for _, stream, trip, tile in tiles(sequence)]
    assert [entry[1:] for entry in sequence.first(count)] == order[:count]


def test_a_slot_whose_ring_divides_the_lap_is_a_number() -> None:
    number = Affine(3, (("layer", 8, 30),))
    assert print_expr(number.modulo(4)) == "3"
    assert print_expr(number.modulo(5)) == "(layer * 3 + 3) % 5"


@given(
    tiles=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    most=st.integers(1, 6),
    at_once=st.integers(1, 3),
    ahead=st.integers(0, 9),
    data=st.data(),
)
def test_of_chosen_members_the_tile_ahead_is_found_as_long_as_there_is_one(tiles, most, at_once, ahead, data) -> None:
    """Whatever their number is, and however many stand in a pass of the loop."""
    count = data.draw(st.integers(0, most))
    lap = Lap("e", most, (("up", tiles[0]), ("down", tiles[1])), Element("count", Const(0)), min(at_once, most))
    sequence = Sequence((lap,))
    order = [(e, stream, t) for e in range(count) for stream, n in lap.streams for t in range(n)]
    for number, (member, stream, t) in enumerate(order):
        counters = {"e": member // lap.at_once, lap.inner: member % lap.at_once, "t": t}
        tile = Affine(0, (("t", 1, dict(lap.streams)[stream]),))
        values = counters.__getitem__, lambda array, index: count
        assert evaluate(sequence.number(0, stream, tile).expr(), *values) == number
        found = [
            (evaluate(target.trip, *values), target.stream, evaluate(target.tile, *values))
            for target in sequence.ahead(0, stream, tile, ahead)
            if all(holds(condition, *values) for condition in target.conditions)
        ]
        assert found == order[number + ahead : number + ahead + 1]
