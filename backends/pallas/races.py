"""What the interpreter's race detector compares: exactly what it would find by itself, in much less time.

It has a list of all accesses to a buffer and walks it at every access: most of the time of an interpreted kernel whose
buffers all lie in one pool. Here every block of rows has a list, an access is on the lists of all its blocks, and those
that can say nothing new are taken off.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

BLOCK = 64  # Rows.

Index = Sequence[slice | int]


def compare_strided_slices() -> None:
    """Let the race detector compare strided accesses exactly; by itself it stops at an assertion on both lines."""
    _module()._slices_overlap = slices_overlap


def compare_within_blocks() -> None:
    """Let the race detector compare an access only with those to the same blocks of rows that none hides."""
    state = _module().RaceDetectionState
    if not hasattr(state, "compares_blocks"):
        state.compares_blocks = True
        state.check_read = by_block(state.check_read, "reads")
        state.check_write = by_block(state.check_write, "reads", "writes")


def _module() -> Any:
    return importlib.import_module("jax._src.pallas.mosaic.interpret.race_detection_state")


def slices_overlap(first: slice | int, second: slice | int) -> bool:
    """Whether two indices, or slices with known ends, have an element in common; `slice(None)` has all."""
    a, b = (_elements(index) for index in (first, second))
    if a is None or b is None:
        return (a is None or len(a) > 0) and (b is None or len(b) > 0)
    if not a or not b or a[-1] < b[0] or b[-1] < a[0]:
        return False
    few, many = sorted((a, b), key=len)
    return any(element in many for element in few) if max(a.step, b.step) > 1 else True


def _elements(index: slice | int) -> range | None:
    if not isinstance(index, slice):
        return range(int(index), int(index) + 1)
    if index == slice(None):
        return None
    return range(int(index.start or 0), int(index.stop), int(index.step or 1))


def by_block(check: Callable[..., None], *hidden: str) -> Callable[..., None]:
    """`check`, on the lists of blocks. Such an access hides those of the lists `hidden`: a write all, a read reads."""

    def check_blocks(state: Any, *access: Any, source_info: Any = None) -> None:
        *where, clock, buffer, indices = access
        rows = _elements(indices[0]) if indices else None
        with state.lock:
            seen: dict[int | None, None] = state.__dict__.setdefault("blocks", {}).setdefault(buffer, {None: None})
            if rows is None:  # The whole buffer: with all blocks so far, and from `None` with those to come.
                blocks = list(seen)
            else:
                blocks = list(range(rows[0] // BLOCK, rows[-1] // BLOCK + 1)) if rows else []
                for block in blocks:
                    if block not in seen:
                        seen[block] = None
                        for accesses in (state.reads, state.writes):
                            accesses[buffer, block] = list(accesses[buffer, None])
        for block in blocks:
            within = _within(indices, rows, block)
            check(state, *where, clock, (buffer, block), within, source_info=source_info)
            with state.lock:
                for name in hidden:
                    _hide(getattr(state, name), (buffer, block), clock, within)

    return check_blocks


def _within(indices: Index, rows: range | None, block: int | None) -> Index:
    """What an access has of a block."""
    if block is None or rows is None or rows.step != 1:
        return indices
    return (slice(max(rows.start, block * BLOCK), min(rows.stop, (block + 1) * BLOCK)), *indices[1:])


def _hide(accesses: Any, key: Any, clock: Any, indices: Index) -> None:
    """Take accesses off a list that have happened before one at `clock` and are within it.

    What races with them, and is yet to come, races with that one too: if it came behind that one, it would come behind
    them, and nothing that is yet to come was before it. The list is a new one: another thread may walk the old one.
    """
    now = _amounts(clock)
    kept = [
        one
        for one in accesses[key]
        if one[-3] is clock or not covers(indices, one[-2]) or not _before(_amounts(one[-3]), now)
    ]
    if len(kept) < len(accesses[key]):
        accesses[key] = kept


def covers(outer: Index, inner: Index) -> bool:
    """Whether every element of `inner` is one of `outer`. Dimensions that are not given are whole."""
    return all(_covers(*pair) for pair in zip_longest(outer, inner, fillvalue=slice(None)))


def _covers(outer: slice | int, inner: slice | int) -> bool:
    a, b = _elements(outer), _elements(inner)
    if a is None or (b is not None and not b):
        return True
    if b is None or not a or b[0] < a[0] or b[-1] > a[-1]:
        return False
    return a.step == 1 or a == b or (len(b) == 1 and b[0] in a)


def _amounts(clock: Any) -> np.ndarray:
    """On jax 0.10.2 the clock is that array."""
    return getattr(clock, "clock", clock)


def _before(first: np.ndarray, second: np.ndarray) -> bool:
    return bool((first <= second).all() and (first < second).any())
