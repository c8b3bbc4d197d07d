"""What a kernel with a paged cache takes for granted of its table is refused before it runs."""

from __future__ import annotations

import numpy as np
import pytest

from schedc.run.decoder import page_table


def test_without_a_table_pages_follow_each_other() -> None:
    np.testing.assert_array_equal(page_table(None, rows=2, tiles=3, pages=7), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("given", "pages", "message"),
    [
        (None, 5, r"2 sequences of 3 tiles take 6 pages, the cache has 5"),
        ([[0, 1, 2]], 6, r"the table of pages is \[1, 3\], the kernel takes \[2, 3\]"),
        ([[0, 1, 2], [3, 4, 6]], 6, r"the table of pages has 0\.\.6, the cache has 0\.\.5"),
        ([[0, 1, 2], [3, 1, 5]], 6, r"page 1 is twice"),
    ],
)
def test_a_table_that_would_mix_sequences_is_refused(given: list | None, pages: int, message: str) -> None:
    table = None if given is None else np.array(given)
    with pytest.raises(ValueError, match=message):
        page_table(table, rows=2, tiles=3, pages=pages)
