"""What the search over linear facts proves of whole numbers."""

import pytest

from schedc.ir.verify.linear import Atoms, Lin, add, scale, sub
from schedc.ir.verify.logic import Logic


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16, 64])
def test_a_chunk_of_a_tile_lies_within_it_whatever_rows_a_chunk_has(rows: int) -> None:
    """position % 512 // 16 is one of the 32 chunks of a tile: a bound that only holds for whole numbers."""
    atoms = Atoms()
    position = Lin(0, ((atoms.atom("position", 0, 4095, "position"), 1),))
    chunk = scale(atoms.floordiv(atoms.mod(position, 512), 16), rows)
    logic = Logic(atoms)
    assert logic.proves(chunk, ())
    assert logic.proves(sub(31 * rows, chunk), ())
    assert not logic.proves(add(chunk, -1), ())
    assert not logic.proves(sub(31 * rows - 1, chunk), ())
