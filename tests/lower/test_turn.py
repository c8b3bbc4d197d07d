"""Layers that share the buffers of an exchange take them in turn."""

import pytest

from schedc.ir.expr import Const, evaluate
from schedc.lower.collectives.turn import turn_of

SHARING = (1, 2, 4, 5, 7, 8, 9)
"""Layers that make the exchange: two of every three, and the two ends of the model."""
PLACES = ((1, 4, 7), (2, 5, 8), (9,))
"""Those of each place of the runs."""


@pytest.mark.parametrize("layers", PLACES)
def test_the_parity_of_an_exchange_is_that_of_its_number_in_the_step(layers: tuple[int, ...]) -> None:
    turn = turn_of(layers, SHARING)
    found = [evaluate(turn.parity(Const(trip)), {}.__getitem__, None) for trip in range(len(layers))]
    assert found == [SHARING.index(layer) % 2 for layer in layers]
